import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { Bench } from './processes.js'
import { countListAndCheck, sellAll } from './store-cases.js'

const POLL = { timeout: 30_000 }

describeOn('redis', 'the command line and the demonstration on Redis', () => {
  async function url(): Promise<string> {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    return server.url
  }

  it('the flash sale', { timeout: 120_000 }, async () => sellAll(await url()))

  it('holdfast run, ls and doctor, with each client', { timeout: 120_000 }, async () => {
    const store = await url()
    const urls = ['ioredis', 'redis', 'iovalkey'].map((driver) => `${store}?driver=${driver}`)
    await countListAndCheck(urls, /appendonly/)
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
