/** A process that sells. Its order: which files, how many buyers, and the lock, if there is one. */
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { goHome } from './at-work.mjs'

const AT_ONCE = 5
const order = JSON.parse(process.argv[2] ?? '{}')

/** What one buyer does. Between the reading and the writing others do the same: that is the race. */
async function buy(fence = 0) {
  const left = Number(await readFile(order.stock, 'utf8'))
  if (left === 0) return // sold out
  await wait(Math.random() * 2) // hesitates
  await writeFile(order.stock, String(left - 1).padStart(4), { flag: 'r+' })
  await appendFile(order.ledger, `${fence} ${left - 1}\n`)
}

/** @type {Holdfast | undefined} */
const locks = order.lock && (await Holdfast.open(order.lock.store))
const buyNext = locks ? () => locks.mutex(order.lock.name).run((hold) => buy(hold.fence)) : () => buy()

let toServe = order.buyers
async function serve() {
  while (toServe-- > 0) {
    await buyNext()
    process.send?.({ event: 'served' })
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, serve))
await locks?.close()
goHome()
