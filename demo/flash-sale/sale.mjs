import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ended } from './crew.mjs'

export const STOCK = 100
export const BUYERS = 1000
export const SELLERS = 4

/**
 * One sale from start to end.
 * @param {{
 *   crew: import('./crew.mjs').Crew,
 *   folder: string,
 *   lock: { store: string, name: string } | undefined,
 *   progress: { step(): void, done(): void },
 * }} sale
 */
export async function runSale({ crew, folder, lock, progress }) {
  const stock = join(folder, 'stock.txt')
  const ledger = join(folder, 'ledger.txt')
  writeFileSync(stock, String(STOCK).padStart(4))
  writeFileSync(ledger, '')

  const sellers = Array.from({ length: SELLERS }, () => {
    const order = { stock, ledger, lock, buyers: BUYERS / SELLERS }
    const seller = crew.start('seller.mjs', [JSON.stringify(order)])
    seller.on('message', (/** @type {{ event: string }} */ message) => {
      if (message.event === 'served') progress.step()
    })
    return ended(seller)
  })
  await Promise.all(sellers)
  progress.done()

  // One line for each piece sold, in the order of the sales: the fence under which it was sold, and
  // the stock that the seller wrote.
  const sales = readFileSync(ledger, 'utf8').split('\n').slice(0, -1)
  const fences = sales.map((sale) => Number(sale.split(' ')[0]))
  return {
    sold: sales.length,
    stocks: sales.map((sale) => Number(sale.split(' ')[1])),
    left: Number(readFileSync(stock, 'utf8')),
    fencesIncrease: fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0)),
  }
}
