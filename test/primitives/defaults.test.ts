import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

const store = memory()

function client(options: HoldfastOptions = {}): Holdfast {
  const locks = new Holdfast(store, options)
  onTestFinished(() => locks.close({ drain: 0 }))
  return locks
}

describe('what a client says for all its locks', () => {
  it('is the wait of calls that say nothing', async () => {
    const locks = client({ wait: '10ms' })
    await using _hold = await client().mutex('wait').acquire()
    const refused = { code: 'ACQUIRE_TIMEOUT' }
    await expect(locks.mutex('wait').acquire()).rejects.toMatchObject(refused)
    await expect(locks.mutex('wait').run(() => {})).rejects.toMatchObject(refused)
    await expect(locks.mutex('wait').acquire({ wait: undefined })).rejects.toMatchObject(refused)
    await expect(locks.all(['wait', 'other']).acquire()).rejects.toMatchObject(refused)
    await expect(locks.readWrite('wait').read.acquire()).rejects.toMatchObject(refused)
    expect(await locks.mutex('wait').tryAcquire()).toBeNull()
  })

  it('gives way to what a call says', async () => {
    const locks = client({ wait: 0, lease: '1h', maxHold: '1h' })
    const hold = await client().mutex('call').acquire()
    const waiting = locks.mutex('call').acquire({ wait: Infinity, lease: '10s', maxHold: Infinity })
    await hold.release()
    await using granted = await waiting
    expect(granted.remainingMs).toBeLessThanOrEqual(10_000)
    await granted.extend('2h')
  })

  it('is the lease and the cap of calls that say nothing', async () => {
    const locks = client({ lease: '1h', maxHold: '2h' })
    await using hold = await locks.mutex('lease').acquire()
    expect(hold.remainingMs).toBeGreaterThan(30_000)
    await expect(hold.extend('3h')).rejects.toThrow(/maxHold/)
    await using all = await locks.all(['lease:1', 'lease:2']).acquire()
    expect(all.holds.every(({ remainingMs }) => remainingMs > 30_000)).toBe(true)
  })

  it('does not bound what is meant to last: a campaign, a latch', async () => {
    const locks = client({ wait: 0, maxHold: '10ms' })
    const leader = await client().election('boss').campaign()
    const campaign = locks.election('boss').campaign()
    await leader.resign()
    await (await campaign).resign()
  })

  it.each([{ wait: '5' }, { wait: -1 }, { lease: 0 }, { lease: 'long' }, { maxHold: 1 }])(
    'refuses %j when the client is made',
    (options) => {
      expect(() => client(options as HoldfastOptions)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
    },
  )
})
