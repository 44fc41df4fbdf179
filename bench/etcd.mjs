import { etcdContenders } from './etcd-contenders.mjs'
import { etcdServers } from './etcd-server.mjs'
import { medians, table, WARM_UP_MS } from './measure.mjs'

const CASES = {
  '64 tasks on 64 locks, one session': { sessions: 1, locks: 64, tasks: 64 },
  // In Go a session is one holder: the tasks of one lock need a session each.
  'One lock, 16 waiters, a session each': { sessions: 16, locks: 1, tasks: 16 },
  // Last, when all code is warm: it takes some thousand pairs, and these are the fewest.
  'Free lock, one after the other': { sessions: 1, locks: 1, tasks: 1 },
}

/** etcd beside its own client for Go, concurrency.Mutex. */
export async function etcd({ roundMs, rounds }) {
  for (const count of [1, 3])
    for (const [title, work] of Object.entries(CASES)) {
      // Servers of its own for each case: etcd 3.4 remembers the largest batch that it ever wrote,
      // and copies that much for each transaction. After the crowd, one pair is slower for everybody.
      const servers = await etcdServers(count)
      try {
        await beside(servers.address, `${title}; ${count === 1 ? 'one server' : `${count} servers`}`, work, {
          // Many short rounds: what else the machine does then hits everybody.
          roundMs: roundMs / 6,
          rounds: rounds * 6,
        })
      } finally {
        await servers.stop()
      }
    }
}

async function beside(address, title, work, { roundMs, rounds }) {
  const open = {}
  for (const [name, start] of Object.entries(etcdContenders)) open[name] = await start(address)
  for (const name of Object.keys(open)) await open[name].round({ ...work, ms: WARM_UP_MS })
  const cpuUs = Object.fromEntries(Object.keys(open).map((name) => [name, []]))
  const measure = async (name) => {
    const [start, cpuBefore] = [performance.now(), open[name].cpuMs()]
    const counts = await open[name].round({ ...work, ms: roundMs })
    const seconds = (performance.now() - start) / 1000
    const pairs = counts.reduce((sum, count) => sum + count, 0)
    cpuUs[name].push(((open[name].cpuMs() - cpuBefore) * 1000) / pairs)
    return pairs / seconds
  }
  const contestants = Object.fromEntries(Object.keys(open).map((name) => [name, () => measure(name)]))
  const rows = await medians(rounds, contestants)
  table(title, work.locks === work.tasks ? 'pairs/s' : 'hand-offs/s', rows, 'go')
  for (const name of Object.keys(open))
    console.log(`  ${name.padEnd(28)} ${Math.round(mean(cpuUs[name]))} µs of its client's processor for each`)
  for (const { close } of Object.values(open)) await close()
}

/** The kernel counts in hundredths of a second: too coarse for a median of short rounds. */
function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
