import { Holdfast } from 'holdfast'
import pg from 'pg'
import { postgresServer } from './postgres-server.mjs'
import { contendedFor } from './processes.mjs'

/**
 * Many processes on one lock of PostgreSQL, run after run: the slowest run must not be far behind
 * the fastest. What a run depends on is shown beside it: how many connections there are, and how
 * many of the processes listen. `HOLDFAST_BENCH_PROCESSES` and `HOLDFAST_BENCH_RUNS` say how many.
 */
export async function fleet({ quick }) {
  const processes = Number(process.env.HOLDFAST_BENCH_PROCESSES ?? 100)
  const runs = Number(process.env.HOLDFAST_BENCH_RUNS ?? (quick ? 3 : 10))
  const tasks = 5
  const server = await postgresServer()
  const watcher = new pg.Client(server.url)
  const rates = []
  try {
    await watcher.connect()
    await sayNeeds(server.url)
    console.log(`\nOne lock, ${processes} processes × ${tasks} tasks, ${runs} runs of 3 s`)
    for (let run = 1; run <= runs; run++) {
      const name = 'holdfast cohort'
      const seen = countMost(watcher)
      const { perSecond, evenness } = await contendedFor({
        name,
        folder: server.url,
        processes,
        tasks,
        ms: 3000,
      })
      const { open, listening } = await seen.end()
      rates.push(perSecond)
      const figures = `${Math.round(perSecond).toLocaleString('en').padStart(7)} grants/s, least-served task ${evenness.toFixed(2)} of the most-served`
      console.log(
        `  ${String(run).padStart(2)}: ${figures}; at most ${open} connections, ${listening} that listen`,
      )
    }
    console.log(`  slowest / fastest: ${(Math.min(...rates) / Math.max(...rates)).toFixed(2)}`)
  } finally {
    await watcher.end()
    await server.stop()
  }
}

async function sayNeeds(url) {
  const locks = await Holdfast.open(url)
  const findings = await locks.check()
  console.log(`\n${findings.find(({ about }) => about === 'connections')?.text}`)
  await locks.close()
}

/** Looks a few times a second; gives the most that was seen. */
function countMost(watcher) {
  const most = { open: 0, listening: 0 }
  const look = async () => {
    const { rows } = await watcher.query(
      `SELECT count(*)::int AS open, count(*) FILTER (WHERE query LIKE 'LISTEN%')::int AS listening
        FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    )
    // One is our own.
    most.open = Math.max(most.open, rows[0].open - 1)
    most.listening = Math.max(most.listening, rows[0].listening)
  }
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, 300)
  return {
    end: async () => {
      clearInterval(timer)
      await looking
      return most
    },
  }
}
