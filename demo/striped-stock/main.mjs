/**
 * The stock of a flash sale: some of it under one lock, for comparison, then 2000 pieces in 100 segments with a lock each.
 * In the middle of that sale everything is counted, with all segments held.
 */
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { bar, line, table } from '../flash-sale/screen.mjs'
import { openStage } from '../flash-sale/stage.mjs'
import { audit, openSale, SELLERS } from './sale.mjs'
import { SALE_MS } from './stock.mjs'

const ONE_LOCK = { pieces: 400, buyers: 440, segments: 1 }
const STRIPED = { pieces: 2000, buyers: 2200, segments: 100 }
/** After so many sales somebody comes to count. */
const COUNT_AFTER = [250, 500, 1000]

const { folder, crew } = openStage()
const store = `sqlite:${join(folder, 'locks.db')}`

try {
  process.exit((await demonstrate()) ? 0 : 1)
} catch (error) {
  line(`\nThe demonstration failed: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}

async function demonstrate() {
  line(`The stock of a flash sale, in segments. ${SELLERS} processes sell.`)
  line(`A sale reads what is left, writes one less, and enters it in the books: ${SALE_MS} ms.`)

  line(`\n1. For comparison: ${ONE_LOCK.pieces} pieces under one lock`)
  const one = await sell(ONE_LOCK, () => {})
  line(`   Sold ${one.books.sold} of ${ONE_LOCK.pieces}: ${Math.round(one.perSecond)} sales per second.`)

  const { pieces, segments } = STRIPED
  line(`\n2. ${pieces} pieces in ${segments} segments; who finds one sold out moves on to the next`)
  const locks = await Holdfast.open(store)
  /** @type {Promise<{ sold: number, left: number }>[]} */
  const counting = []
  const many = await sell(STRIPED, ({ sold, name, stock }) => {
    if (sold < (COUNT_AFTER[counting.length] ?? Infinity)) return
    const everything = locks.striped(name, segments).all()
    counting.push(everything.run(() => audit(stock)))
  })
  const counts = await Promise.all(counting)
  await locks.close()
  for (const { sold, left } of counts)
    line(`   Counted in the middle, all segments held: ${sold} sold + ${left} left = ${sold + left}.`)
  const ratio = (many.perSecond / one.perSecond).toFixed(1)
  line(`   Sold ${many.books.sold} of ${pieces}: ${Math.round(many.perSecond)} sales per second,`)
  line(`   ${ratio} times as many as under one lock.`)

  const rows = [...judge(one), ...judge(many), judgeCounts(counts)]
  line(`\n${table(rows)}`)
  return rows.every((row) => row.isRight)
}

/**
 * @param {import('./sale.mjs').Size} size
 * @param {(moment: { sold: number, name: string, stock: import('./stock.mjs').Stock }) => void} onServed
 */
async function sell(size, onServed) {
  const progress = bar('buyers served', size.buyers)
  const sale = await openSale({
    crew,
    folder,
    store,
    size,
    onServed(sold) {
      progress.step()
      onServed({ sold, name: sale.name, stock: sale.stock })
    },
  })
  const { sold, seconds } = await sale.run()
  progress.done()
  return { size, told: sold, perSecond: sold / seconds, books: audit(sale.stock) }
}

/** @param {Awaited<ReturnType<typeof sell>>} sale */
function judge({ size, told, books }) {
  const { sold, left, buyers, oversold, fencesIncrease } = books
  const what = size.segments === 1 ? 'one lock' : `${size.segments} segments`
  return [
    {
      what: `${what}: pieces`,
      outcome: `${sold} sold to ${buyers} buyers, ${left} left`,
      isRight: [sold, told, buyers].every((number) => number === size.pieces) && left === 0,
    },
    { what: `${what}: oversold`, outcome: `${oversold} of ${size.segments}`, isRight: oversold === 0 },
    {
      what: `${what}: fences in each`,
      outcome: fencesIncrease ? 'strictly increasing' : 'out of order',
      isRight: fencesIncrease,
    },
  ]
}

/** @param {{ sold: number, left: number }[]} counts */
function judgeCounts(counts) {
  const complete = counts.filter(({ sold, left }) => sold + left === STRIPED.pieces)
  const isInTheMiddle = counts.some(({ sold, left }) => sold > 0 && left > 0)
  return {
    what: 'counts in the middle of the sale',
    outcome: `${complete.length} of ${COUNT_AFTER.length} complete`,
    isRight: complete.length === COUNT_AFTER.length && isInTheMiddle,
  }
}
