import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { detached, systemEnv } from '../../src/base/env.js'

const keep = { keepAlive: true }
/** How much later than asked a timer may be, so that it is never early: setTimeout's clock ticks in whole milliseconds. */
const LATE_MS = 1

describe('timers of the machine', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('fire once, after their time', () => {
    const run = vi.fn()
    systemEnv.timer(100, run, keep)
    vi.advanceTimersByTime(99)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1_000)
    expect(run).toHaveBeenCalledOnce()
  })

  it('are not early by a fraction', () => {
    const run = vi.fn()
    systemEnv.timer(99.2, run, keep)
    vi.advanceTimersByTime(99)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1 + LATE_MS)
    expect(run).toHaveBeenCalledOnce()
  })

  it('last beyond the longest that setTimeout knows, which would fire at once', () => {
    const run = vi.fn()
    const yearMs = 365 * 86_400_000
    systemEnv.timer(yearMs, run, keep)
    vi.advanceTimersByTime(yearMs - 1)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1 + LATE_MS)
    expect(run).toHaveBeenCalledOnce()
  })

  it('can be stopped in any of their steps, and after they fired', () => {
    const run = vi.fn()
    const stopEarly = systemEnv.timer(2 ** 33, run, keep)
    const stopLater = systemEnv.timer(2 ** 33, run, keep)
    stopEarly()
    vi.advanceTimersByTime(2 ** 32)
    stopLater()
    vi.advanceTimersByTime(2 ** 34)
    expect(run).not.toHaveBeenCalled()
    const stopFired = systemEnv.timer(1, run, keep)
    vi.advanceTimersByTime(1 + LATE_MS)
    stopFired()
    expect(run).toHaveBeenCalledOnce()
  })

  it('take a time that has passed as now', () => {
    const run = vi.fn()
    systemEnv.timer(-5, run, keep)
    vi.advanceTimersByTime(0)
    expect(run).toHaveBeenCalledOnce()
  })
})

describe('the machine', () => {
  it('keeps the process only for timers that say so', () => {
    const countTimers = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = countTimers()
    const stopIdle = systemEnv.timer(60_000, () => {}, { keepAlive: false })
    expect(countTimers()).toBe(before)
    const stop = systemEnv.timer(60_000, () => {}, keep)
    expect(countTimers()).toBe(before + 1)
    stopIdle()
    stop()
  })

  it('has a monotonic clock, a wall clock, chance and ids', () => {
    const moments = [systemEnv.now(), systemEnv.now(), systemEnv.now()]
    expect(moments).toEqual(moments.toSorted((a, b) => a - b))
    expect(Math.abs(systemEnv.wallMs() - Date.now())).toBeLessThan(1_000)
    expect(systemEnv.random()).toBeLessThan(1)
    expect(systemEnv.id()).not.toBe(systemEnv.id())
  })
})

describe('the async context', () => {
  const flow = new AsyncLocalStorage<string>()

  it('is left by detached work, and by what it starts', async () => {
    const seen = await flow.run('mine', () =>
      detached(async () => {
        const atOnce = flow.getStore()
        await setImmediate()
        return [atOnce, flow.getStore()]
      }),
    )
    expect(seen).toEqual([undefined, undefined])
  })

  it('is kept by the caller of detached work', () => {
    flow.run('mine', () => {
      detached(() => {})
      expect(flow.getStore()).toBe('mine')
    })
  })

  it('is left by timers', async () => {
    const seen = await new Promise((resolve) => {
      flow.run('mine', () => systemEnv.timer(0, () => resolve(flow.getStore()), keep))
    })
    expect(seen).toBeUndefined()
  })
})
