import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { Bench } from '../cli/processes.js'
import { freePort } from '../servers/ports.js'
import { compileRecipes } from './recipes.js'
import { abortWaiting, countOf, payAt } from './stage.js'

let recipe: ReturnType<typeof compileRecipes>

beforeAll(() => {
  recipe = compileRecipes('docs/guides/frameworks/express-and-fastify.md')
})

async function serve(heading: string, change: Record<string, string> = {}) {
  const bench = new Bench()
  const port = await freePort()
  const addresses = { '3000': String(port), 'sqlite:./locks.db': bench.store }
  const server = bench.node([recipe(heading, { ...addresses, ...change })])
  const locks = new Holdfast(sqlite(bench.path('locks.db')))
  onTestFinished(() => locks.close({ drain: 0 }))
  return { server, locks, pay: await payAt(port) }
}

describe.each(['## Express', '## Fastify'])('%s', (heading) => {
  it('an aborted request leaves no waiter in line', async () => {
    const { server, locks, pay } = await serve(heading, { "'5s'": "'1h'" })
    const hold = await abortWaiting(locks, pay)
    await hold.release()
    expect(await pay(42)).toMatchObject({ status: 200, body: { paid: '42' } })
    expect(server.stderr).toBe('')
  })

  it('a wait that is over gives 503', async () => {
    const { locks, pay } = await serve(heading, { "'5s'": "'50ms'" })
    await locks.mutex('order:42').acquire({ lease: '1h' })
    expect(await pay(42)).toEqual({ status: 503, body: { code: 'ACQUIRE_TIMEOUT' } })
  })

  it('SIGTERM answers the waiting request, and ends the process', async () => {
    const { server, locks, pay } = await serve(heading, { "'5s'": "'1h'" })
    await locks.mutex('order:42').acquire({ lease: '1h' })
    const waiting = pay(42)
    await expect.poll(() => countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 1 })
    server.kill('SIGTERM')
    expect(await waiting).toEqual({ status: 503, body: { code: 'CLOSED' } })
    expect((await server.done).code).toBe(0)
    expect(await countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 0 })
  })
})
