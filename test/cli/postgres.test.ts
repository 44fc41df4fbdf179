import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { Bench } from './processes.js'

describeOn('postgres', 'the command line and the demonstration on PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())

  it('the flash sale', { timeout: 180_000 }, async () => {
    const { code, stdout } = await new Bench().node(['demo/flash-sale/main.mjs', '--store', server.url]).done
    expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
    expect(stdout).toMatch(/A writes all the same, with fence \d+: refused\./)
    expect(stdout).not.toContain('WRONG')
    expect(code).toBe(0)
  })

  it('holdfast run, ls and doctor, with each driver', { timeout: 180_000 }, async () => {
    const bench = new Bench()
    writeFileSync(bench.path('counter'), '0\n')
    const script = `
      read value <${bench.path('counter')}
      sleep 0.01
      echo $((value + 1)) >${bench.path('counter')}`
    const runs = ['pg', 'postgres'].flatMap((driver) =>
      [1, 2, 3].map(
        () => bench.script('counter', ['--store', `${server.url}?driver=${driver}`], script).done,
      ),
    )
    expect((await Promise.all(runs)).map(({ code, stderr }) => [code, stderr])).toEqual(
      runs.map(() => [0, '']),
    )
    expect(readFileSync(bench.path('counter'), 'utf8')).toBe('6\n')
    const holder = bench.script('held', ['--store', server.url], 'echo inside; read line')
    await holder.wrote(/inside/)
    expect((await bench.holdfast(['ls', '--store', server.url]).done).stdout).toMatch(/held/)
    holder.end()
    expect((await holder.done).code).not.toBeNull()
    const doctor = await bench.holdfast(['doctor', '--store', server.url]).done
    expect(doctor.stdout).toMatch(/durability|fsync/i)
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
