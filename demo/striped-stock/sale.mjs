import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ended } from '../flash-sale/crew.mjs'
import { Stock } from './stock.mjs'

export const SELLERS = 4

/** @typedef {{ pieces: number, buyers: number, segments: number }} Size */

/**
 * One sale, up to the moment at which everybody is ready.
 * @param {{
 *   crew: import('../flash-sale/crew.mjs').Crew,
 *   folder: string,
 *   store: string,
 *   size: Size,
 *   onServed(sold: number): void,
 * }} sale
 */
export async function openSale({ crew, folder, store, size, onServed }) {
  // The number of segments is part of the name: with another number, buyers lead to other segments.
  const name = `stock-${size.segments}`
  const place = join(folder, name)
  mkdirSync(place)
  const stock = new Stock(place, size)
  stock.fill()

  const buyers = Array.from({ length: size.buyers }, (_, index) => `buyer:${index}`)
  let sold = 0
  const sellers = Array.from({ length: SELLERS }, (_, index) => {
    const mine = buyers.filter((_buyer, number) => number % SELLERS === index)
    const order = { folder: place, store, name, size, buyers: mine }
    return crew.start('../striped-stock/seller.mjs', [JSON.stringify(order)])
  })
  const ends = Promise.all(sellers.map(ended))
  await Promise.race([Promise.all(sellers.map(ready)), ends])

  /** Lets them sell, and resolves when the last buyer is served. */
  async function run() {
    for (const seller of sellers)
      seller.on('message', (/** @type {{ event: string, isSold: boolean }} */ message) => {
        if (message.event !== 'served') return
        if (message.isSold) sold += 1
        onServed(sold)
      })
    const startedAt = performance.now()
    for (const seller of sellers) seller.send('open')
    await ends
    return { sold, seconds: (performance.now() - startedAt) / 1000 }
  }
  return { name, stock, run }
}

/** @param {import('node:child_process').ChildProcess} seller */
async function ready(seller) {
  const [message] = await once(seller, 'message')
  if (message.event !== 'ready') throw new Error(message.reason)
}

/**
 * What the books say after the sale.
 * @param {Stock} stock
 */
export function audit(stock) {
  const segments = stock.read()
  const sales = segments.flatMap((segment) => segment.sales)
  const inFull = stock.pieces / segments.length
  return {
    sold: sales.length,
    left: segments.reduce((sum, { left }) => sum + left, 0),
    buyers: new Set(sales.map(({ buyer }) => buyer)).size,
    oversold: segments.filter((segment) => segment.left < 0 || segment.sales.length > inFull).length,
    fencesIncrease: segments.every((segment) =>
      segment.sales.every(({ fence }, index) => fence > (segment.sales[index - 1]?.fence ?? 0)),
    ),
  }
}
