/** Increments a counter file that nothing but the lock protects, and writes down the fence of each increment. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { Holdfast } from 'holdfast'

const [store = '', counter = '', ledger = '', times = '0'] = process.argv.slice(2)
const locks = await Holdfast.open(store)
for (let i = 0; i < Number(times); i++) {
  await locks.mutex('counter').run(async (hold) => {
    const value = Number(readFileSync(counter, 'utf8'))
    await setImmediate() // let others in, if the lock lets them
    writeFileSync(counter, String(value + 1))
    appendFileSync(ledger, `${hold.fence}\n`)
  })
}
await locks.close()
