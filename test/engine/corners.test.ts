import { expect, it } from 'vitest'
import type { Env } from '../../src/base/env.js'
import type { BeatReply, Connection, Push, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

function world() {
  const virtual = new VirtualWorld({ seed: 1 })
  const store = memory({ env: virtual.env({ name: 'server' }) })
  const client = (name: string, of: Store = store) => new Holdfast(of, { env: virtual.env({ name }) })
  return { virtual, store, client }
}

/**
 * The store, but the next pulse is answered only when it is let go, and its client can be told
 * things.
 */
function withSlowPulse(store: Store) {
  const slow = { isArmed: false, letGo: () => {}, push: (_: Push) => {}, pulses: 0, lastId: '' }
  const connect: Store['connect'] = (client) => {
    slow.push = client.push
    const real = store.connect(client)
    const pulse: Connection['pulse'] = async (beats) => {
      slow.pulses += beats.length
      slow.lastId = beats.at(-1)?.id ?? slow.lastId
      const replies = await real.pulse(beats)
      if (!slow.isArmed) return replies
      slow.isArmed = false
      return new Promise<BeatReply[]>((resolve) => {
        slow.letGo = () => resolve(replies)
      })
    }
    return new Proxy(real, {
      get: (target, key) => (key === 'pulse' ? pulse : Reflect.get(target, key)?.bind(target)),
    })
  }
  return { slow, wrapped: { name: store.name, capabilities: store.capabilities, connect } satisfies Store }
}

it('goes on with the pulse of a claim that was asked for anew while a beat was under way', async () => {
  const { virtual, store, client } = world()
  const { slow, wrapped } = withSlowPulse(store)
  const holder = client('holder')
  const waiter = client('waiter', wrapped)
  const hold = await virtual.until(holder.mutex('r').acquire())
  const waiting = waiter.mutex('r').acquire({ lease: 900 })
  slow.isArmed = true
  await virtual.run(virtual.timeMs + 400)
  expect(slow.pulses).toBe(1)
  // Its place is gone, it asks anew and is answered; only then does the old beat come back.
  slow.push({ type: 'lost', resource: 'r', id: slow.lastId })
  await virtual.run(virtual.timeMs + 1)
  slow.letGo()
  await virtual.run(virtual.timeMs + 5000)
  expect(slow.pulses).toBeGreaterThan(5)
  await virtual.until(hold.release())
  expect((await virtual.until(waiting, 1000)).isValid).toBe(true)
  await virtual.until(Promise.all([holder.close(), waiter.close()]))
})

it('gives up at the end of the wait where a hold is over before it is given out', async () => {
  const locks = new Holdfast(memory())
  await expect(locks.mutex('r').acquire({ maxHold: 5 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  // Valid for nine milliseconds at most: held, or timed out, but never a process that hangs.
  const outcome = await locks
    .mutex('r')
    .acquire({ maxHold: 10, wait: 200 })
    .catch((error) => error)
  expect(['ACQUIRE_TIMEOUT', undefined]).toContain(outcome.code)
  await locks.close({ drain: 0 })
})

it('keeps to the wait of each caller of one owner', async () => {
  const { virtual, client } = world()
  const [other, mine] = [client('other'), client('mine')]
  await virtual.until(other.mutex('r').acquire())
  const ask = (wait: number) =>
    mine
      .mutex('r')
      .acquire({ owner: 'me', wait })
      .catch((error) => error.code)
  const [first, , third] = [ask(100), ask(5000), ask(100)]
  expect(await virtual.until(first, 200)).toBe('ACQUIRE_TIMEOUT')
  expect(await virtual.until(third, 200)).toBe('ACQUIRE_TIMEOUT')
  await virtual.until(Promise.all([other.close(), mine.close()]))
})

it('lets a run settle whose nested hold is lost and never released', async () => {
  const { virtual, client } = world()
  const locks = client('one')
  const mutex = locks.mutex('r')
  const run = mutex
    .run(async () => void (await mutex.acquire()), { maxHold: 100 })
    .catch((error) => error.code)
  expect(await virtual.until(run, 500)).toBe('HOLD_LOST')
  await virtual.until(locks.close({ drain: 0 }))
})

it('does not abort the signal of a hold that was released before the loss', async () => {
  const { virtual, client } = world()
  const locks = client('one')
  const mutex = locks.mutex('r')
  let isInnerAborted: boolean | undefined
  const outer = mutex.run(
    async (hold) => {
      const inner = await mutex.run(async (nested) => nested.signal)
      await new Promise((resolve) => hold.signal.addEventListener('abort', resolve))
      isInnerAborted = inner.aborted
    },
    { maxHold: 100 },
  )
  await expect(virtual.until(outer)).rejects.toMatchObject({ code: 'HOLD_LOST' })
  expect(isInnerAborted).toBe(false)
  await virtual.until(locks.close({ drain: 0 }))
})

it('makes the adopter the owner that it names', async () => {
  const { virtual, client } = world()
  const [giver, taker] = [client('giver'), client('taker')]
  const hold = await virtual.until(giver.mutex('r').acquire())
  const adopted = await virtual.until(hold.export().then((passed) => taker.adopt(passed, { owner: 'w' })))
  const again = await virtual.until(taker.mutex('r').acquire({ owner: 'w', wait: 100 }))
  expect(again.fence).toBe(adopted.fence)
  await virtual.until(Promise.all([giver.close(), taker.close()]))
})

it('robs nobody when the fence to break stands in the wrong place', async () => {
  const locks = new Holdfast(memory())
  const hold = await locks.mutex('r').acquire()
  const misplaced = hold.fence as unknown as { fence: number }
  await expect(locks.breakHold('r', misplaced)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(hold.isValid).toBe(true)
  await locks.close({ drain: 0 })
})

it('gives nothing out to one who asks anew, or closes again, at the very moment of closing', async () => {
  const locks = new Holdfast(memory())
  const { signal } = await locks.mutex('r').acquire()
  const asked: Promise<unknown>[] = []
  signal.addEventListener('abort', () => {
    asked.push(
      locks
        .mutex('s')
        .acquire()
        .catch((error) => error.code),
    )
    asked.push(locks.close({ drain: 0 }))
  })
  await locks.close({ drain: 0 })
  expect(await Promise.all(asked)).toEqual(['CLOSED', undefined])
})

it.each(['fair', '', null, 1])('connects nothing for a client with the order %j', async (order) => {
  const store = memory()
  let connections = 0
  const counting: Store = {
    ...store,
    capabilities: store.capabilities,
    connect(client) {
      connections++
      return store.connect(client)
    },
  }
  const options = { order } as unknown as { order: 'strict' }
  expect(() => new Holdfast(counting, options)).toThrow("order must be 'cohort' or 'strict'")
  expect(connections).toBe(0)
  const locks = new Holdfast(counting)
  for (const make of [() => locks.mutex('r', options), () => locks.readWrite('r', options)])
    expect(make).toThrow("order must be 'cohort' or 'strict'")
  await locks.close({ drain: 0 })
})

/**
 * A client whose clock can go on while its timers do not, as it is straight after a process has
 * stood still.
 */
function whoStandsStill() {
  const { virtual, store } = world()
  const process = virtual.env({ name: 'sleeper' })
  let stoodMs = 0
  const env: Env = {
    now: () => process.now() + stoodMs,
    wallMs: () => process.wallMs() + stoodMs,
    random: () => process.random(),
    id: () => process.id(),
    timer: (ms, run, options) => process.timer(ms, run, options),
    keepProcess() {},
    letProcessEnd() {},
  }
  const { slow, wrapped } = withSlowPulse(store)
  const locks = new Holdfast(wrapped, { env })
  return { virtual, slow, locks, standStill: (ms: number) => (stoodMs += ms) }
}

it('waits for no outer hold of its own whose time is over, also where a late answer would have renewed it', async () => {
  const { virtual, slow, locks, standStill } = whoStandsStill()
  const { read, write } = locks.readWrite('r')
  const work = read.run(
    async (outer) => {
      const { signal } = outer
      slow.isArmed = true
      await virtual.run(virtual.timeMs + 400)
      expect(slow.pulses).toBe(1)
      const writing = write.run(() => {}, { owner: 'another', wait: 5000 }).catch(() => {})
      standStill(900)
      const inner = read.run(() => 'inside again', { lease: 900 })
      // Before any timer runs.
      expect(signal.aborted).toBe(true)
      slow.letGo()
      expect(await virtual.until(inner, 10_000)).toBe('inside again')
      await virtual.until(writing)
    },
    { lease: 900 },
  )
  await expect(virtual.until(work)).rejects.toMatchObject({ code: 'HOLD_LOST' })
  await virtual.until(locks.close({ drain: 0 }))
})

it('lets an owner wait for no earlier hold of his own whose time is over', async () => {
  const { virtual, slow, locks, standStill } = whoStandsStill()
  const options = { owner: 'me', lease: 900 }
  const { signal } = await virtual.until(locks.mutex('r').acquire(options))
  slow.isArmed = true
  await virtual.run(virtual.timeMs + 400)
  standStill(900)
  const again = locks.mutex('r').acquire(options)
  expect(signal.aborted).toBe(true)
  slow.letGo()
  expect((await virtual.until(again, 10_000)).isValid).toBe(true)
  await virtual.until(locks.close({ drain: 0 }))
})
