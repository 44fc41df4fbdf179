import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'

const run = promisify(execFile)
const FAULTS = ['throws', 'nothing'] as const

const REDIS = ['duplicate', 'connect', 'subscribe', 'unsubscribe', 'publish', 'eval', 'on']
const POOL = ['release', 'on', 'off']

const CASES = {
  redis: {
    start: startRedis,
    clients: {
      ioredis: [...REDIS, 'script', 'evalsha', 'pipeline', 'exec', 'disconnect'],
      redis: [...REDIS, 'scriptLoad', 'evalSha', 'multi', 'destroy'],
    },
  },
  postgres: {
    start: startPostgres,
    clients: {
      pg: ['connect', 'query', ...POOL, 'ref', 'unref'],
      postgres: ['unsafe', 'listen', 'unlisten'],
    },
  },
  mariadb: {
    start: () => startMariadb(),
    clients: {
      mysql2: ['getConnection', 'query', 'release', 'destroy', 'on', 'removeListener'],
      mariadb: ['getConnection', 'query', 'release', 'destroy', 'on', 'removeListener'],
    },
  },
}

for (const [kind, { start, clients }] of Object.entries(CASES))
  describeOn(kind as keyof typeof CASES, `a client of the user whose methods misbehave (${kind})`, () => {
    let server: { readonly url: string; stop(): Promise<unknown> }
    beforeAll(async () => {
      server = await start()
    })
    afterAll(() => server.stop())

    for (const [name, methods] of Object.entries(clients))
      for (const fault of FAULTS)
        it.concurrent(`does not end the process: ${name} ${fault}`, { timeout: 300_000 }, async (context) => {
          const reached = await play(name, server.url, fault, methods)
          context.expect(reached.length).toBeGreaterThan(1)
        })
  })

async function play(name: string, url: string, fault: string, methods: readonly string[]): Promise<string[]> {
  const script = join(import.meta.dirname, 'faulty/client.mjs')
  const { stdout } = await run(process.execPath, [script, name, url, fault, ...methods], {
    // One that never comes to its timers would outlive the test.
    timeout: 120_000,
    killSignal: 'SIGKILL',
  })
  return stdout.trim().split(' ')
}
