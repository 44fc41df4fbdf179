import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { Bench } from './processes.js'

const POLL = { timeout: 30_000 }

describeOn('redis', 'the command line and the demonstration on Redis', () => {
  async function url(): Promise<string> {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    return server.url
  }

  it('the flash sale', { timeout: 120_000 }, async () => {
    const store = await url()
    const { code, stdout } = await new Bench().node(['demo/flash-sale/main.mjs', '--store', store]).done
    expect(stdout).toContain(store)
    expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
    expect(stdout).toMatch(/A writes all the same, with fence \d+: refused\./)
    expect(code).toBe(0)
  })

  it('holdfast run, ls and doctor, with each client', { timeout: 120_000 }, async () => {
    const store = await url()
    const bench = new Bench()
    writeFileSync(bench.path('counter'), '0\n')
    const script = `
      read value <${bench.path('counter')}
      sleep 0.01
      echo $((value + 1)) >${bench.path('counter')}`
    const runs = ['ioredis', 'redis', 'iovalkey'].flatMap((driver) =>
      [1, 2, 3].map(() => bench.script('counter', ['--store', `${store}?driver=${driver}`], script).done),
    )
    expect((await Promise.all(runs)).map(({ code, stderr }) => [code, stderr])).toEqual(
      runs.map(() => [0, '']),
    )
    expect(readFileSync(bench.path('counter'), 'utf8')).toBe('9\n')
    const holder = bench.script('held', ['--store', store], 'echo inside; read line')
    await holder.wrote(/inside/)
    expect((await bench.holdfast(['ls', '--store', store]).done).stdout).toMatch(/held/)
    holder.end()
    expect((await holder.done).code).not.toBeNull()
    const doctor = await bench.holdfast(['doctor', '--store', store]).done
    expect(doctor.stdout).toMatch(/appendonly/)
  })

  it('holdfast run says that the store is down, not that the lock is taken', {
    timeout: 60_000,
  }, async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const bench = new Bench()
    const store = ['--store', server.url]
    const holder = bench.script('held', store, 'echo inside; read line')
    await holder.wrote(/inside/)
    const waiter = bench.holdfast(['run', 'held', ...store, '--wait', '6s', '--', 'true'])
    const locks = await Holdfast.open(server.url)
    await expect.poll(async () => (await locks.inspect().next()).value?.waiters.length, POLL).toBe(1)
    await locks.close()
    server.pause()
    const { code, stderr } = await waiter.done
    expect([code, stderr]).toEqual([69, expect.stringMatching(/did not answer within/)])
    server.resume()
    holder.end()
  })
})
