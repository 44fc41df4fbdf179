/** A process that sells. Its order: where the stock and the locks are, how large the sale is, and which buyers to serve. */
import { once } from 'node:events'
import { Holdfast } from 'holdfast'
import { goHome } from '../flash-sale/at-work.mjs'
import { Stock } from './stock.mjs'

const AT_ONCE = 10
/** @type {{ folder: string, store: string, name: string, size: import('./sale.mjs').Size, buyers: string[] }} */
const order = JSON.parse(process.argv[2] ?? '{}')

const locks = await Holdfast.open(order.store)
const segments = locks.striped(order.name, order.size.segments)
const stock = new Stock(order.folder, order.size)
/** Nothing is ever put back, so a segment that was empty once need not be asked again. */
const soldOut = new Set()

/**
 * A buyer starts at the segment that its name leads to, and moves on to the next one while they are sold out.
 * @param {string} buyer
 */
async function serve(buyer) {
  const first = segments.indexOf(buyer)
  for (let step = 0; step < segments.count; step++) {
    const index = (first + step) % segments.count
    if (soldOut.has(index)) continue
    const isSold = await segments.at(index).run((hold) => stock.sell(index, { buyer, fence: hold.fence }))
    if (isSold) return true
    soldOut.add(index)
  }
  return false
}

async function serveNext() {
  for (let buyer = order.buyers.pop(); buyer !== undefined; buyer = order.buyers.pop())
    process.send?.({ event: 'served', isSold: await serve(buyer) })
}

const open = once(process, 'message')
process.send?.({ event: 'ready' })
await open
await Promise.all(Array.from({ length: AT_ONCE }, serveNext))
await locks.close()
goHome()
