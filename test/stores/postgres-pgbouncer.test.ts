import { afterAll, beforeAll, expect, it } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { eventually, inTime } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type PgBouncer, startPgBouncer } from '../servers/pgbouncer.js'
import { DEAF_LIMIT_MS, takeTurnsDeaf } from './deaf-turns.js'

describeOn('pgbouncer', 'behind a PgBouncer that drops LISTEN', () => {
  let pooler: PgBouncer
  beforeAll(async () => {
    pooler = await startPgBouncer()
  })
  afterAll(() => pooler.stop())

  it.each([true, false])(
    'locks are handed over all the same, and check() tells (listen: %s)',
    async (listen) => {
      await using one = new Holdfast(postgres(pooler.url, { listen }), { order: 'strict' })
      await using two = new Holdfast(postgres(pooler.url, { listen }), { order: 'strict' })
      const order: string[] = []
      const hold = await one.mutex('door').acquire()
      const waiting = [two, one, two].map((locks, index) =>
        locks.mutex('door').run(() => void order.push(`${index}`)),
      )
      await eventually('all in line', async () => {
        for await (const line of one.inspect({ prefix: 'door' })) return line.waiters.length === 3
        return false
      })
      await hold.release()
      await inTime('everybody', Promise.all(waiting), 30_000)
      expect(order).toHaveLength(3)
      const messages = (await one.check()).find(({ about }) => about === 'messages')
      expect(messages).toMatchObject({ level: listen ? 'risk' : 'fine' })
    },
  )

  it(
    'each waiter of a line that moves on is served',
    () => takeTurnsDeaf(() => postgres(pooler.url)),
    DEAF_LIMIT_MS,
  )
})
