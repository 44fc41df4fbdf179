import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startMemcached } from '../servers/memcached.js'
import { Bench } from './processes.js'

describeOn('memcached', 'the command line on memcached', () => {
  it('holdfast run, ls and doctor', { timeout: 180_000 }, async () => {
    const server = await startMemcached()
    onTestFinished(() => server.stop())
    const bench = new Bench()
    writeFileSync(bench.path('counter'), '0\n')
    const script = `
      read value <${bench.path('counter')}
      sleep 0.01
      echo $((value + 1)) >${bench.path('counter')}`
    const runs = [1, 2, 3].map(() => bench.script('counter', ['--store', server.url], script).done)
    expect((await Promise.all(runs)).map(({ code, stderr }) => [code, stderr])).toEqual(
      runs.map(() => [0, '']),
    )
    expect(readFileSync(bench.path('counter'), 'utf8')).toBe('3\n')
    const holder = bench.script('held', ['--store', server.url], 'echo inside; read line')
    await holder.wrote(/inside/)
    expect((await bench.holdfast(['ls', '--store', server.url]).done).stdout).toMatch(/held/)
    holder.end()
    await holder.done
    const doctor = await bench.holdfast(['doctor', '--store', server.url]).done
    expect(doctor.stdout).toMatch(/restart of memcached forgets every lock/)
    expect(doctor.code).toBe(0)
  })
})
