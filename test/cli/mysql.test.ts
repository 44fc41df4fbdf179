import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { Bench } from './processes.js'

describeOn('mariadb', 'the command line and the demonstration on MySQL', () => {
  async function url(): Promise<string> {
    const server = await startMariadb()
    onTestFinished(() => server.stop())
    return server.url
  }

  it('the flash sale', { timeout: 180_000 }, async () => {
    const store = await url()
    const { code, stdout } = await new Bench().node(['demo/flash-sale/main.mjs', '--store', store]).done
    expect(stdout).toContain(store)
    expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
    expect(stdout).toMatch(/A writes all the same, with fence \d+: refused\./)
    expect(code).toBe(0)
  })

  it('holdfast run, ls and doctor, with each driver', { timeout: 180_000 }, async () => {
    const store = await url()
    const bench = new Bench()
    writeFileSync(bench.path('counter'), '0\n')
    const script = `
      read value <${bench.path('counter')}
      sleep 0.01
      echo $((value + 1)) >${bench.path('counter')}`
    const runs = ['mysql2', 'mariadb'].flatMap((driver) =>
      [1, 2, 3].map(() => bench.script('counter', ['--store', `${store}?driver=${driver}`], script).done),
    )
    expect((await Promise.all(runs)).map(({ code, stderr }) => [code, stderr])).toEqual(
      runs.map(() => [0, '']),
    )
    expect(readFileSync(bench.path('counter'), 'utf8')).toBe('6\n')
    const holder = bench.script('held', ['--store', store], 'echo inside; read line')
    await holder.wrote(/inside/)
    expect((await bench.holdfast(['ls', '--store', store]).done).stdout).toMatch(/held/)
    holder.end()
    expect((await holder.done).code).not.toBeNull()
    const doctor = await bench.holdfast(['doctor', '--store', store]).done
    expect(doctor.stdout).toMatch(/innodb_flush_log_at_trx_commit/)
  })
})
