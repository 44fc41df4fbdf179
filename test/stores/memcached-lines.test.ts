import { describe, expect, it, vi } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import { MemcachedServer } from '../../src/drivers/memcached/index.js'
import { MemcachedBackend } from '../../src/stores/memcached/backend.js'
import { MemcachedLine } from '../../src/stores/memcached/line.js'
import { LinePoller } from '../../src/stores/memcached/poller.js'

/** Without a connection: no command is sent. */
function newBackend(): MemcachedBackend {
  const address = { host: '127.0.0.1', port: 1, env: systemEnv, timeoutMs: 1000 }
  return new MemcachedBackend({
    servers: [() => new MemcachedServer(address)],
    prefix: 'holdfast',
    retentionMs: 60_000,
    env: systemEnv,
    clock: null,
  })
}

/** Lines in which a call is under way, as in those of a busy client. */
function busyLines(backend: MemcachedBackend, count: number): MemcachedLine[] {
  return Array.from({ length: count }, (_, index) => {
    const line = backend.line('s', `${index}`)
    line.queue = []
    return line
  })
}

describe('the lines that a client of memcached remembers', () => {
  it('has one line of each name, also with more in use than it remembers', () => {
    const backend = newBackend()
    const busy = busyLines(backend, 10_000)
    const line = backend.line('s', 'new')
    expect(backend.line('s', 'new')).toBe(line)
    expect(backend.line('s', '0')).toBe(busy[0])
  })

  it('does not look through all lines again and again where all are in use', () => {
    const backend = newBackend()
    busyLines(backend, 10_000)
    const look = vi.spyOn(MemcachedLine.prototype, 'isIdle', 'get')
    for (let index = 0; index < 100; index++) backend.line('s', `new-${index}`)
    expect(look.mock.calls.length).toBeLessThan(20_000)
    look.mockRestore()
  })

  it('forgets idle lines where there are many', () => {
    const backend = newBackend()
    const first = backend.line('s', 'first')
    for (let index = 0; index < 10_000; index++) backend.line('s', `${index}`)
    expect(backend.line('s', 'first')).not.toBe(first)
  })
})

describe('the polls of a client of memcached', () => {
  /** The intervals that a poller has chosen, for so many lines with a claim each. */
  const intervalsOf = async (count: number, isHeld: boolean): Promise<number[]> => {
    const intervals: number[] = []
    let run = (): void => {}
    const env: Env = {
      ...systemEnv,
      now: () => 3_600_000,
      timer: (ms, callback) => {
        intervals.push(ms)
        run = callback
        return () => {}
      },
    }
    const poller = new LinePoller({ env, onSeen: () => {}, onLapse: () => {} })
    const member = { id: 'c', onNews: () => {} }
    for (const line of busyLines(newBackend(), count)) {
      line.own.set('mine', { member, isHeld, lapsesAt: Infinity })
      poller.update(line)
    }
    const chosen = intervals.length
    run()
    await vi.waitUntil(() => intervals.length > chosen)
    return intervals
  }

  it('asks for each lock that it waits for at least about every two seconds', async () => {
    expect(Math.max(...(await intervalsOf(5000, false)))).toBeLessThanOrEqual(2400)
  })

  it('asks for each lock that it holds at least every five seconds', async () => {
    expect(Math.max(...(await intervalsOf(9000, true)))).toBe(5000)
  })
})
