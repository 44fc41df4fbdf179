import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { Bench } from './processes.js'
import { countListAndCheck, sellAll } from './store-cases.js'

describeOn('postgres', 'the command line and the demonstration on PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())

  it('the flash sale', { timeout: 180_000 }, () => sellAll(server.url))

  it('holdfast run, ls and doctor, with each driver', { timeout: 180_000 }, () => {
    const urls = ['pg', 'postgres'].map((driver) => `${server.url}?driver=${driver}`)
    return countListAndCheck(urls, /durability|fsync/i)
  })

  it('holdfast schema postgres: what it prints makes everything, once or twice', {
    timeout: 60_000,
  }, async () => {
    const bench = new Bench()
    const { stdout, code } = await bench.holdfast(['schema', 'postgres', '--schema', 'by_hand']).done
    expect(code).toBe(0)
    for (let time = 0; time < 2; time++) await server.query(stdout)
    expect(await server.query('select version from by_hand.meta')).toBe('1')
  })

  it('says what is wrong with a server that is not there', { timeout: 60_000 }, async () => {
    const url = 'postgres://postgres@127.0.0.1:1/postgres'
    const { code, stderr } = await new Bench().holdfast([
      'run',
      'x',
      '--store',
      url,
      '--wait',
      '2s',
      '--',
      'true',
    ]).done
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/PostgreSQL cannot be reached/)
  })
})
