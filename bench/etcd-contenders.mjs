// The contestants on etcd. `round({ sessions, locks, tasks, ms })`: so many tasks take and give back
// one of so many locks for so long; gives the pairs of each task. `cpuMs()`: the time of the
// processor that its process has used so far.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Holdfast } from 'holdfast'
import { etcd } from 'holdfast/etcd'
import { ensurePeer, peerCommand } from '../scripts/peers.mjs'

export const etcdContenders = {
  /** A process, because it is Go: etcd's own client, which the run fetches and builds. */
  go: async (address) => {
    const missing = ensurePeer('etcd')
    if (missing) throw new Error(missing.explanation)
    const [program] = peerCommand('etcd')
    const worker = spawn(program, ['bench', address], { stdio: ['pipe', 'pipe', 'inherit'] })
    const answers = createInterface(worker.stdout)[Symbol.asyncIterator]()
    return {
      round: async ({ sessions, locks, tasks, ms }) => {
        worker.stdin.write(`${sessions} ${locks} ${tasks} ${ms}\n`)
        const { value, done } = await answers.next()
        if (done) throw new Error('The process of Go ended')
        return value.split(' ').map(Number)
      },
      cpuMs: () => cpuMsOf(worker.pid),
      close: async () => {
        worker.stdin.end()
        if (worker.exitCode === null) await once(worker, 'exit')
      },
    }
  },

  holdfast: (address) => holdfast(address, 'cohort'),
  'holdfast, strict order': (address) => holdfast(address, 'strict'),
}

async function holdfast(address, order) {
  const clients = []
  return {
    round: async ({ sessions, locks, tasks, ms }) => {
      while (clients.length < sessions) clients.push(new Holdfast(etcd(address), { order }))
      const end = performance.now() + ms
      return Promise.all(
        Array.from({ length: tasks }, async (_, task) => {
          const mutex = clients[task % sessions].mutex(`lock-${task % locks}`)
          let count = 0
          for (; performance.now() < end; count++) await (await mutex.acquire()).release()
          return count
        }),
      )
    },
    cpuMs: () => cpuMsOf(process.pid),
    close: async () => {
      for (const client of clients) await client.close()
    },
  }
}

/** The kernel counts in hundredths of a second. */
function cpuMsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
