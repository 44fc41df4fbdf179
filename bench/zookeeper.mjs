import { median, medians, table } from './measure.mjs'
import { zookeeperContenders } from './zookeeper-contenders.mjs'
import { zookeeperServers } from './zookeeper-server.mjs'

const CASES = {
  'Free lock, one after the other': { sessions: 1, locks: 1, tasks: 1 },
  '64 tasks on 64 locks, one session': { sessions: 1, locks: 64, tasks: 64 },
  'One lock, 16 waiters, one session': { sessions: 1, locks: 1, tasks: 16 },
  'One lock, 16 waiters, a session each': { sessions: 16, locks: 1, tasks: 16 },
}

/** ZooKeeper beside Apache Curator. */
export async function zookeeper({ roundMs, rounds }) {
  for (const count of [1, 3]) {
    const servers = await zookeeperServers(count)
    try {
      // Many short rounds: what else the machine does then hits everybody.
      await beside(servers.address, count === 1 ? 'one server' : `a follower of ${count} servers`, {
        roundMs: roundMs / 3,
        rounds: rounds * 3,
      })
    } finally {
      await servers.stop()
    }
  }
}

async function beside(address, where, { roundMs, rounds }) {
  const open = {}
  for (const [name, start] of Object.entries(zookeeperContenders)) open[name] = await start(address)
  // The servers, Curator and we: two compilers at run time, which take their time. Everybody gets
  // the same.
  const namesFor = ({ locks, tasks }) =>
    Object.keys(open).filter((name) => locks === tasks || !open[name].needsFreeLocks)
  for (const work of Object.values(CASES))
    for (const name of namesFor(work)) await open[name].round({ ...work, ms: roundMs })
  for (const [title, work] of Object.entries(CASES)) {
    const names = namesFor(work)
    const [evenness, cpuUs] = [emptyLists(names), emptyLists(names)]
    const measure = async (name) => {
      const [start, cpuBefore] = [performance.now(), open[name].cpuMs()]
      const counts = await open[name].round({ ...work, ms: roundMs })
      const seconds = (performance.now() - start) / 1000
      const pairs = counts.reduce((sum, count) => sum + count, 0)
      evenness[name].push(Math.min(...counts) / Math.max(...counts))
      cpuUs[name].push(((open[name].cpuMs() - cpuBefore) * 1000) / pairs)
      return pairs / seconds
    }
    const contestants = Object.fromEntries(names.map((name) => [name, () => measure(name)]))
    const rows = await medians(rounds, contestants)
    table(`${title}; ${where}`, work.locks === work.tasks ? 'pairs/s' : 'hand-offs/s', rows, 'curator')
    for (const name of names) {
      const cpu = `${Math.round(median(cpuUs[name]))} µs of its client's processor for each`
      const share = work.tasks > 1 ? `; least served / most: ${median(evenness[name]).toFixed(2)}` : ''
      console.log(`  ${name.padEnd(28)} ${cpu}${share}`)
    }
  }
  for (const { close } of Object.values(open)) await close()
}

function emptyLists(names) {
  return Object.fromEntries(names.map((name) => [name, []]))
}
