// The contestants on ZooKeeper. `round({ sessions, locks, tasks, ms })`: so many tasks take and
// give back one of so many locks for so long; gives the pairs of each task. `cpuMs()`: the time of
// the processor that its process has used so far.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Holdfast } from 'holdfast'
import { zookeeper } from 'holdfast/zookeeper'
import { ZooKeeperClient } from 'holdfast/zookeeper/client'

const JARS = ['curator-recipes', 'curator-framework', 'curator-client', 'zookeeper', 'guava', 'slf4j-nop']
const CLASS_PATH = JARS.map((name) => `/usr/share/java/${name}.jar`).join(':')
const CURATOR_WORKER = join(import.meta.dirname, 'zookeeper', 'CuratorWorker.java')
const SESSION_TIMEOUT_MS = 10_000

export const zookeeperContenders = {
  /** A process, because it is Java. */
  curator: async (address) => {
    const worker = spawn('java', ['-XX:+UseSerialGC', '-cp', CLASS_PATH, CURATOR_WORKER, address], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    worker.once('error', (error) => {
      throw new Error(`java does not start (${error.message}); install a JDK and libcurator-recipes-java`)
    })
    const answers = createInterface(worker.stdout)[Symbol.asyncIterator]()
    return {
      round: async ({ sessions, locks, tasks, ms }) => {
        worker.stdin.write(`${sessions} ${locks} ${tasks} ${ms}\n`)
        const { value, done } = await answers.next()
        if (done) throw new Error('The Curator process ended; libcurator-recipes-java and a JDK are needed')
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

  /**
   * What no lock can do without: a node of its own, made and removed. It excludes nobody, so it can
   * only be measured where nobody waits.
   */
  'a node made and removed': async (address) => {
    const client = new ZooKeeperClient(address, { sessionTimeout: SESSION_TIMEOUT_MS })
    const paths = Array.from({ length: 64 }, (_, lock) => `/bare-${lock}`)
    const isExisting = async (path) => (await client.exists(path)).stat !== null
    for (const path of paths) if (!(await isExisting(path))) await client.create(path)
    return {
      needsFreeLocks: true,
      round: ({ tasks, ms }) =>
        looped(tasks, ms, (task) => async () => {
          const { path } = await client.create(`${paths[task]}/claim-`, { mode: 'ephemeralSequential' })
          await client.delete(path)
        }),
      cpuMs: () => cpuMsOf(process.pid),
      close: () => client.close(),
    }
  },
}

async function holdfast(address, order) {
  const clients = []
  return {
    round: async ({ sessions, locks, tasks, ms }) => {
      // Clients with the same options share a session.
      while (clients.length < sessions)
        clients.push(
          new Holdfast(zookeeper(address, { sessionTimeout: SESSION_TIMEOUT_MS + clients.length }), {
            order,
          }),
        )
      return looped(tasks, ms, (task) => {
        const mutex = clients[task % sessions].mutex(`lock-${task % locks}`)
        return async () => {
          const hold = await mutex.acquire()
          await hold.release()
        }
      })
    },
    cpuMs: () => cpuMsOf(process.pid),
    close: async () => {
      for (const client of clients) await client.close()
    },
  }
}

/** So many tasks for so long; gives how often each was done. */
function looped(tasks, ms, workOf) {
  const end = performance.now() + ms
  return Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      const work = workOf(task)
      let count = 0
      for (; performance.now() < end; count++) await work()
      return count
    }),
  )
}

/** The kernel counts in hundredths of a second. */
function cpuMsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
