import { describe, expect, it } from 'vitest'
import { mysqlGuard, postgresGuard, sqliteGuard } from '../../src/fence/index.js'

/** Clients that only record what they are asked to send: a value is judged before that. */
const guards = {
  sqlite: (sent: unknown[]) =>
    sqliteGuard({
      prepare: () => ({
        run: (...values) => ({ changes: sent.push(values) && 1 }),
        all: (...values) => [sent.push(values) && { fence: 0 }],
      }),
    }),
  pg: (sent: unknown[]) =>
    postgresGuard({
      query: async (_text, values) => ({ rows: [{ fence: 0 }], rowCount: sent.push(values) && 1 }),
    }),
  'postgres.js': (sent: unknown[]) =>
    postgresGuard({
      unsafe: async (_text, values) => Object.assign([{ fence: 0 }], { count: sent.push(values) && 1 }),
    }),
  mysql2: (sent: unknown[]) =>
    mysqlGuard({
      query: async (sql, values) => {
        sent.push(values)
        return sql.startsWith('SELECT') ? [[{ fence: 0 }], []] : [{ affectedRows: 1 }, []]
      },
    }),
}

describe.each(Object.entries(guards))('a value of `where`, %s', (_driver, guardOf) => {
  it.each([
    ['an object', { id: 1 }],
    ['an empty object', {}],
    ['an object without a prototype', Object.assign(Object.create(null), { id: 1 })],
    ['an object that prints itself as SQL', { toSqlString: () => '1 OR 1' }],
    ['an array', [1, 2]],
    ['a function', () => 1],
    ['a symbol', Symbol('id')],
    ['nothing', undefined],
  ])('is refused before anything is sent: %s', async (_name, value) => {
    const sent: unknown[] = []
    const guard = guardOf(sent)
    const row = { table: 'account', where: { region: 'eu', id: value } }
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining("'id'") }
    await expect((async () => guard.update(5, { ...row, set: { name: 'x' } }))()).rejects.toMatchObject(
      refused,
    )
    await expect((async () => guard.explain(5, row))()).rejects.toMatchObject(refused)
    expect(sent).toEqual([])
  })

  it.each([
    ['text', 'a'],
    ['a number', 1],
    ['a bigint', 1n],
    ['a truth value', true],
    ['a date', new Date(0)],
    ['bytes', new Uint8Array([1])],
    ['a buffer', Buffer.from('a')],
  ])('goes to the driver as it is: %s', async (_name, value) => {
    const sent: unknown[][] = []
    const guard = guardOf(sent)
    const row = { table: 'account', where: { id: value } }
    expect(await guard.update(5, { ...row, set: {} })).toBe(true)
    expect(await guard.explain(5, row)).toBe(true)
    expect(sent.map((values) => values.includes(value))).toEqual([true, true])
  })

  it('may be null, which needs no value', async () => {
    const sent: unknown[] = []
    const row = { table: 'account', where: { id: null } }
    expect(await guardOf(sent).update(5, { ...row, set: {} })).toBe(true)
    expect(sent).toEqual([[5, 5]])
  })
})
