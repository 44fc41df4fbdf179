/**
 * A flash sale: 4 processes sell a stock of 100 to 1000 buyers.
 * First without a lock, then under Holdfast; then a worker is paused for longer than its lease.
 */
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { pauseScene } from './pause-scene.mjs'
import { BUYERS, runSale, SELLERS, STOCK } from './sale.mjs'
import { bar, line, table } from './screen.mjs'
import { openStage } from './stage.mjs'

const HELP = `A flash sale, without and with Holdfast.

Usage:
  npm start -- [--store URL]

Options:
  --store URL   the store that keeps the lock (default: a temporary SQLite file)
  --help        this text

Exit code: 0 if it oversold without the lock, sold exactly ${STOCK} with it, and the stale write was refused; else 1.
`

const { store, help } = readArguments()
if (help) {
  process.stdout.write(HELP)
  process.exit(0)
}

const { folder, crew } = openStage()

/** Where the lock is; its name is new in every run, so that two demonstrations on one store do not meet. */
const lock = { store: store ?? `sqlite:${join(folder, 'locks.db')}`, name: `stock:${basename(folder)}` }

try {
  process.exit((await demonstrate()) ? 0 : 1)
} catch (error) {
  line(`\nThe demonstration failed: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}

async function demonstrate() {
  line(`A flash sale: ${STOCK} pieces, ${BUYERS} buyers, ${SELLERS} processes that sell.`)
  line('Each buyer reads the stock from a file, hesitates for a moment, and writes it back.')

  line('\n1. Without a lock')
  const without = await runSale({ crew, folder, lock: undefined, progress: bar('buyers served', BUYERS) })
  line(`   Sold ${without.sold} of ${STOCK}: oversold by ${without.sold - STOCK}.`)

  line(`\n2. Under Holdfast, on ${lock.store}`)
  const under = await runSale({ crew, folder, lock, progress: bar('buyers served', BUYERS) })
  line(
    `   Sold ${under.sold} of ${STOCK}. Fences ${under.fencesIncrease ? 'strictly increasing' : 'OUT OF ORDER'}.`,
  )

  line('\n3. A worker is paused for longer than its lease')
  const pause = await pauseScene({ crew, lock, tell: (text) => line(`   ${text}`) })

  const rows = [
    {
      what: 'without a lock',
      outcome: `${without.sold} sold, ${without.sold - STOCK} too many`,
      isRight: without.sold > STOCK,
    },
    {
      what: 'under Holdfast',
      outcome: `${under.sold} sold, ${under.left} left`,
      isRight: under.sold === STOCK && under.left === 0,
    },
    {
      what: 'fences of the sales',
      outcome: under.fencesIncrease ? 'strictly increasing' : 'out of order',
      isRight: under.fencesIncrease,
    },
    {
      what: 'hold.isValid after the pause',
      outcome: String(pause.isValidOnWaking),
      isRight: pause.isValidOnWaking === false,
    },
    {
      what: 'write with the stale fence',
      outcome: pause.isStaleRefused ? 'refused' : 'ACCEPTED',
      isRight: pause.isStaleRefused,
    },
    {
      what: 'newest data',
      outcome: pause.isNewestIntact ? 'intact' : 'OVERWRITTEN',
      isRight: pause.isNewestIntact,
    },
  ]
  line(`\n${table(rows)}`)
  return rows.every((row) => row.isRight)
}

function readArguments() {
  try {
    const options = /** @type {const} */ ({
      store: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    })
    const { values } = parseArgs({ options })
    if (values.store?.startsWith('memory:'))
      throw new Error("'memory:' is inside one process; the sellers are four")
    return values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`)
    process.exit(64)
  }
}
