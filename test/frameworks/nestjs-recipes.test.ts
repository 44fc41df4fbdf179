import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { Bench } from '../cli/processes.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { borrowPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { compileRecipes } from './recipes.js'
import { answerOf, countOf, tickInTwo } from './stage.js'

const PAGE = 'docs/guides/frameworks/nestjs.md'
let recipe: ReturnType<typeof compileRecipes>

beforeAll(() => {
  recipe = compileRecipes(PAGE)
})

function lockedOn(bench: Bench): Holdfast {
  const locks = new Holdfast(sqlite(bench.path('locks.db')))
  onTestFinished(() => locks.close({ drain: 0 }))
  return locks
}

describe('a NestJS application', () => {
  it('## A lock around a method', async () => {
    const bench = new Bench()
    const port = await freePort()
    const file = recipe('## A lock around a method', {
      '3000': String(port),
      'sqlite:./locks.db': bench.store,
    })
    bench.node([file])
    const locks = lockedOn(bench)
    const hold = await locks.mutex('order:42').acquire({ lease: '1h' })
    const url = `http://127.0.0.1:${port}/orders`
    await expect.poll(() => answerOf(`${url}/7/pay`, 'POST')).toMatchObject({ status: 201 })
    const waiting = answerOf(`${url}/42/pay`, 'POST')
    await expect.poll(() => countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 1 })
    await hold.release()
    const { status, body } = await waiting
    expect({ status, paid: body['paid'] }).toEqual({ status: 201, paid: '42' })
    expect(Number(body['fence'])).toBeGreaterThan(hold.fence)
  })

  it('## A job once per cluster: of three ticks in each of two processes, one runs', async () => {
    const bench = new Bench()
    const file = recipe('## A job once per cluster', {
      '0 3 * * *': '* * * * * *',
      'sqlite:./locks.db': bench.store,
    })
    const processes = await tickInTwo(bench, file)
    for (const each of processes) expect((await each.done).signal).toBe('SIGTERM')
    // A busy machine is late for a tick, and the package warns of that.
    const late = /^(\[Cron\] Missed execution deadline .*\n)*$/
    for (const { stderr } of processes) expect(stderr).toMatch(late)
  })

  it('## Shutting down: SIGTERM gives the hold back, although its lease is an hour', async () => {
    const bench = new Bench()
    const file = recipe('## Shutting down', { 'sqlite:./locks.db': bench.store })
    const first = bench.node([file])
    await first.wrote(/importing/)
    const second = bench.node([file])
    const locks = lockedOn(bench)
    await expect.poll(() => countOf(locks, 'import')).toEqual({ holders: 1, waiters: 1 })
    first.kill('SIGTERM')
    await second.wrote(/importing/)
    const { signal, stdout } = await first.done
    expect(signal).toBe('SIGTERM')
    expect(stdout).toContain('stopped between two batches, still valid: true')
    second.kill('SIGTERM')
    await second.done
    expect(await countOf(locks, 'import')).toEqual({ holders: 0, waiters: 0 })
  })

  it('## Tests', async () => {
    const { stdout, stderr } = await new Bench().node([recipe('## Tests')]).done
    expect(stdout + stderr).toBe('[ true, false ] 0\n')
  })
})

describeOn('redis', 'a NestJS application on Redis', () => {
  it('## Health: up, down while the server is silent, and up again', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const port = await freePort()
    const change = { '3000': String(port), 'redis://localhost:6379': redis.url }
    new Bench().node([recipe('## Health', change)])
    const health = () => answerOf(`http://127.0.0.1:${port}/ready`)
    const up = { status: 200, body: { status: 'ok', info: { locks: { status: 'up' } } } }
    await expect.poll(health).toMatchObject(up)
    redis.pause()
    const down = { status: 'down', code: 'STORE_UNAVAILABLE', message: expect.any(String) }
    expect(await health()).toMatchObject({ status: 503, body: { status: 'error', error: { locks: down } } })
    redis.resume()
    await expect.poll(health).toMatchObject(up)
  })
})

describeOn(
  'postgres',
  'a NestJS application on PostgreSQL',
  () => {
    it('## Options from other providers, and several clients', async () => {
      const server = await borrowPostgres()
      onTestFinished(() => server.stop())
      const bench = new Bench()
      const file = recipe('## Options from other providers, and several clients', {
        'sqlite:./locks.db': bench.store,
      })
      const { code, stdout, stderr } = await bench.node([file], { DATABASE_URL: server.url }).done
      expect(stdout + stderr).toBe('{ isTakenThere: true, isTakenHere: false }\n')
      expect(code).toBe(0)
    })
  },
  { own: false },
)
