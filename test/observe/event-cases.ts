import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AcquireContext, HoldContext, RunContext } from '../../src/base/events.js'
import type { Store } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import type { WaiterView } from '../../src/primitives/views.js'
import { named, outcomes, recordEvents } from './recorder.js'

const ONE_REQUEST = ['acquire:start', 'acquire:end', 'acquire:asyncStart', 'acquire:asyncEnd']
const ONE_HOLD = ['hold:start', 'hold:end', 'hold:asyncStart', 'hold:asyncEnd']

let spaces = 0

/** What every store has to publish. Other clients of the same space are given by `client`. */
export function describeEvents(title: string, store: () => Store): void {
  const open = (options: HoldfastOptions = {}): ((more?: HoldfastOptions) => Holdfast) => {
    const space = `events-${process.pid}-${spaces++}`
    return (more = {}) => {
      const locks = new Holdfast(store(), { space, ...options, ...more })
      onTestFinished(() => locks.close({ drain: 0 }))
      return locks
    }
  }

  describe(`the events of ${title}`, () => {
    it('of acquire and release tell of one request and one hold', async () => {
      const locks = open()()
      const events = recordEvents()
      const hold = await locks.mutex('a').acquire({ label: 'checkout', owner: 'me', wait: '10s' })
      await hold.release()
      expect(events.map(({ event }) => event)).toEqual([...ONE_REQUEST, ...ONE_HOLD])
      const acquired = named(events, 'acquire:asyncEnd')[0]?.context as AcquireContext
      expect(acquired).toMatchObject({
        resource: 'a',
        store: expect.stringMatching(/^\w+$/),
        space: expect.stringContaining('events-'),
        primitive: 'mutex',
        permits: 2 ** 30,
        label: 'checkout',
        owner: 'me',
        longestWaitMs: expect.closeTo(10_000, -3),
        isQueued: false,
        outcome: 'granted',
        fence: hold.fence,
      })
      expect(acquired.waitMs).toBeGreaterThanOrEqual(0)
      const held = named(events, 'hold:asyncEnd')[0]?.context as HoldContext
      expect(held).toMatchObject({ resource: 'a', fence: hold.fence, leaseMs: 30_000, outcome: 'released' })
      expect(held.acquire).toBe(acquired)
      expect(held.holdMs).toBeGreaterThanOrEqual(0)
      expect(events.every(({ context }) => context === acquired || context === held)).toBe(true)
    })

    it('of run include the work', async () => {
      const locks = open()()
      const events = recordEvents()
      await locks.mutex('a').run(async () => {})
      expect(events.map(({ event }) => event)).toEqual([
        ...ONE_REQUEST,
        'hold:start',
        'hold:end',
        'run:start',
        'run:end',
        'run:asyncStart',
        'run:asyncEnd',
        'hold:asyncStart',
        'hold:asyncEnd',
      ])
      const ran = named(events, 'run:start')[0]?.context as RunContext
      expect(ran.hold).toBe(named(events, 'hold:start')[0]?.context)
    })

    it('of run tell of the error of the work, and the hold is released', async () => {
      const locks = open()()
      const events = recordEvents()
      const oops = new Error('oops')
      await expect(locks.mutex('a').run(() => Promise.reject(oops))).rejects.toBe(oops)
      expect(named(events, 'run:error').map(({ context }) => context.error)).toEqual([oops])
      expect(outcomes(events, 'hold')).toEqual(['released'])
    })

    it('of a run have the context of their subscriber', async () => {
      const locks = open()()
      const caller = new AsyncLocalStorage<string>()
      const bound = new AsyncLocalStorage<HoldContext>()
      const asked = new AsyncLocalStorage<AcquireContext>()
      const { start } = tracingChannel<HoldContext, RunContext>('holdfast:run')
      start.bindStore(bound, ({ hold }) => hold)
      const acquiring = tracingChannel<AcquireContext, AcquireContext>('holdfast:acquire')
      acquiring.start.bindStore(asked)
      const seen: unknown[] = []
      const listener = { asyncEnd: () => void seen.push(caller.getStore(), asked.getStore()?.resource) }
      acquiring.asyncEnd.subscribe(listener.asyncEnd)
      onTestFinished(() => {
        start.unbindStore(bound)
        acquiring.start.unbindStore(asked)
        acquiring.asyncEnd.unsubscribe(listener.asyncEnd)
      })
      const first = await locks.mutex('a').acquire()
      const running = caller.run('caller', () =>
        locks.mutex('a').run(async (hold) => {
          await new Promise((resolve) => setImmediate(resolve))
          expect(asked.getStore()).toBeUndefined()
          expect(caller.getStore()).toBe('caller')
          expect(bound.getStore()?.fence).toBe(hold.fence)
          // A nested run stands on the same hold, and publishes nothing.
          await locks.mutex('a').run(() => expect(bound.getStore()?.fence).toBe(hold.fence))
          await locks.mutex('b').run(() => expect(bound.getStore()?.resource).toBe('b'))
          expect(bound.getStore()?.resource).toBe('a')
        }),
      )
      await first.release()
      await running
      expect(bound.getStore()).toBeUndefined()
      expect(seen).toEqual([undefined, 'a', 'caller', 'a', 'caller', 'b'])
    })

    it('of a hold that is entered again are not repeated', async () => {
      const locks = open()()
      const events = recordEvents()
      await locks.mutex('a').run(() => locks.mutex('a').run(() => {}))
      const hold = await locks.mutex('b').acquire({ owner: 'me' })
      const again = await locks.mutex('b').acquire({ owner: 'me' })
      await hold.release()
      expect(outcomes(events, 'hold')).toEqual(['released'])
      await again.release()
      expect(named(events, 'run:start')).toHaveLength(1)
      expect(outcomes(events, 'acquire')).toEqual(['granted', 'granted'])
      expect(outcomes(events, 'hold')).toEqual(['released', 'released'])
    })

    it('tell how each request ended', async () => {
      const client = open()
      const [locks, other] = [client(), client()]
      const holder = await other.mutex('a').acquire()
      const events = recordEvents()
      expect(await locks.mutex('a').tryAcquire()).toBeNull()
      await expect(locks.mutex('a').acquire({ wait: 0 })).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
      await expect(locks.mutex('a').acquire({ wait: 20 })).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
      const signal = AbortSignal.timeout(20)
      await expect(locks.mutex('a').acquire({ signal })).rejects.toMatchObject({ code: 'ABORTED' })
      await expect(locks.semaphore('a', 2).acquire()).rejects.toMatchObject({ code: 'CAPACITY_MISMATCH' })
      const closing = client()
      const waiting = expect(closing.mutex('a').acquire()).rejects.toMatchObject({ code: 'CLOSED' })
      await closing.close()
      await waiting
      const sentAway = expect(locks.mutex('a').acquire()).rejects.toMatchObject({ code: 'CANCELLED' })
      const waiter = await vi.waitFor(() => onlyWaiter(locks, 'a'), { timeout: 20_000 })
      await expect(other.mutex('a').acquire({ maxWaiters: 1 })).rejects.toMatchObject({ code: 'LINE_FULL' })
      await locks.cancelWaiter('a', waiter.id)
      await sentAway
      expect(outcomes(events, 'acquire')).toEqual([
        'refused',
        'refused',
        'timeout',
        'aborted',
        'failed',
        'closed',
        'full',
        'cancelled',
      ])
      const errors = named(events, 'acquire:error').map(({ context }) => context.error.code)
      expect(errors).toEqual([
        'ACQUIRE_TIMEOUT',
        'ABORTED',
        'CAPACITY_MISMATCH',
        'CLOSED',
        'LINE_FULL',
        'CANCELLED',
      ])
      const late = named(events, 'acquire:asyncEnd')[2]?.context as AcquireContext
      expect(late.waitMs).toBeGreaterThanOrEqual(20)
      expect(late).toMatchObject({ isQueued: true, longestWaitMs: 20, fence: undefined })
      expect(named(events, 'hold:start')).toEqual([])
      await holder.release()
      expect(outcomes(events, 'hold')).toEqual([])
    })

    it.each(['cohort', 'strict'] as const)(
      'of requests that wait here in %s order are complete',
      async (order) => {
        const locks = open({ order })()
        const events = recordEvents()
        let [inside, most] = [0, 0]
        const work = async (): Promise<void> => {
          most = Math.max(most, ++inside)
          await new Promise((resolve) => setImmediate(resolve))
          inside--
        }
        await Promise.all(Array.from({ length: 20 }, () => locks.mutex('hot').run(work)))
        expect(most).toBe(1)
        expect(outcomes(events, 'acquire')).toEqual(Array.from({ length: 20 }, () => 'granted'))
        expect(outcomes(events, 'hold')).toEqual(Array.from({ length: 20 }, () => 'released'))
        const holds = named(events, 'hold:start').map(({ context }) => context as HoldContext)
        const fences = holds.map(({ fence }) => fence)
        expect(new Set(fences).size).toBe(20)
        expect(fences).toEqual(fences.toSorted((a, b) => a - b))
        const queued = holds.filter(({ acquire }) => acquire.isQueued).length
        expect(queued).toBeGreaterThan(0)
        if (order === 'cohort') expect(queued).toBe(19)
        // No two holds overlap: one leaves before the next begins.
        const heldBy = events.flatMap(({ event }) =>
          event === 'hold:start' ? [1] : event === 'hold:asyncStart' ? [-1] : [],
        )
        expect(heldBy).toEqual(Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 1 : -1)))
      },
    )

    it('name the primitive', async () => {
      const locks = open()()
      const events = recordEvents()
      await locks.mutex('m').run(() => {})
      await locks.readWrite('rw').read.run(() => {})
      await locks.readWrite('rw').write.run(() => {})
      await locks.semaphore('s', 5).run(() => {}, { permits: 2 })
      await locks.all(['x', 'y']).run(() => {})
      await (await locks.election('e').campaign()).resign()
      await locks.once('o', { atLeast: '1m', atMost: '1h' }, () => {})
      expect(await locks.once('o', { atLeast: '1m', atMost: '1h' }, () => {})).toEqual({ ran: false })
      await Promise.all([locks.barrier('b', 2).meet(), locks.barrier('b', 2).meet()])
      const granted = named(events, 'acquire:asyncEnd').map(
        ({ context }) =>
          `${context.primitive} ${context.resource} ${context.permits === 2 ** 30 ? 'all' : context.permits}`,
      )
      expect(granted).toEqual([
        'mutex m all',
        'read rw 1',
        'write rw all',
        'semaphore s 2',
        'all x all',
        'all y all',
        'election election:e all',
        'once once:o all',
        'once once:o all',
        'barrier barrier:b 1',
        'barrier barrier:b 1',
      ])
      expect(outcomes(events, 'hold')).toEqual(granted.map(() => 'released'))
      expect(named(events, 'run:start').map(({ context }) => context.hold.resource)).toEqual(
        expect.arrayContaining(['x', 'y']),
      )
    })

    it('tell of a hold that was broken, and of one whose time is over', async () => {
      const client = open()
      const [locks, operator] = [client(), client()]
      const events = recordEvents()
      const broken = await locks.mutex('a').acquire({ lease: '1s' })
      await operator.breakHold('a')
      await vi.waitFor(() => expect(broken.signal.aborted).toBe(true), { timeout: 20_000 })
      expect(outcomes(events, 'hold')).toEqual(['lost'])
      expect(await broken.release()).toBe(false)
      const capped = await locks.mutex('b').acquire({ maxHold: 50 })
      await vi.waitFor(() => expect(capped.signal.aborted).toBe(true), { timeout: 20_000 })
      await capped.release()
      expect(outcomes(events, 'hold')).toEqual(['lost', 'expired'])
      const errors = named(events, 'hold:error').map(({ context }) => context.error.code)
      expect(errors).toEqual(['HOLD_LOST', 'HOLD_LOST'])
    })

    it('tell of the holds that close() revokes', async () => {
      const locks = open()()
      const events = recordEvents()
      await locks.mutex('a').acquire()
      await locks.close({ drain: 0 })
      expect(outcomes(events, 'hold')).toEqual(['closed'])
    })

    it('tell of each call that renews', async () => {
      const locks = open()()
      const events = recordEvents()
      const holds = await Promise.all(['a', 'b'].map((name) => locks.mutex(name).acquire({ lease: 200 })))
      await vi.waitFor(() => expect(named(events, 'pulse:asyncEnd').length).toBeGreaterThan(1), {
        timeout: 20_000,
      })
      const pulse = named(events, 'pulse:asyncEnd')[0]?.context
      expect(pulse).toMatchObject({ space: expect.any(String), store: expect.any(String) })
      expect(pulse.beats).toBeGreaterThanOrEqual(1)
      expect(pulse.durationMs).toBeGreaterThanOrEqual(0)
      await Promise.all(holds.map((hold) => hold.release()))
    })
  })
}

async function onlyWaiter(locks: Holdfast, name: string): Promise<WaiterView> {
  for await (const { waiters } of locks.inspect({ name })) {
    expect(waiters).toHaveLength(1)
    return waiters[0] as WaiterView
  }
  throw new Error(`Nobody is in line for '${name}'`)
}
