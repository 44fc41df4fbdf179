// The contestants on ZooKeeper. `round({ sessions, locks, tasks, ms })`: so many tasks take and give back one of so many locks for so long;
// gives the pairs of each task. `cpuMs()`: the time of the processor that its process has used so far.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Holdfast } from 'holdfast'
import { zookeeper } from 'holdfast/zookeeper'

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

  holdfast: async (address) => {
    const clients = []
    return {
      round: async ({ sessions, locks, tasks, ms }) => {
        // Clients with the same options share a session.
        while (clients.length < sessions)
          clients.push(
            new Holdfast(zookeeper(address, { sessionTimeout: SESSION_TIMEOUT_MS + clients.length }), {
              order: 'strict',
            }),
          )
        const end = performance.now() + ms
        return Promise.all(
          Array.from({ length: tasks }, async (_, task) => {
            const mutex = clients[task % sessions].mutex(`lock-${task % locks}`)
            let count = 0
            for (; performance.now() < end; count++) {
              const hold = await mutex.acquire()
              await hold.release()
            }
            return count
          }),
        )
      },
      cpuMs: () => cpuMsOf(process.pid),
      close: async () => {
        for (const client of clients) await client.close()
      },
    }
  },
}

/** The kernel counts in hundredths of a second. */
function cpuMsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
