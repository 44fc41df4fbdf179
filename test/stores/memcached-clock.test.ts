import { describe, expect, it, onTestFinished } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import type { Push } from '../../src/contract/store.js'
import { MemcachedServer, type MemcachedStats } from '../../src/drivers/memcached/index.js'
import { MemcachedBackend } from '../../src/stores/memcached/backend.js'
import { MemcachedConnection } from '../../src/stores/memcached/connection.js'
import { ServerClock } from '../../src/stores/memcached/server-clock.js'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { startMemcached } from '../servers/memcached.js'

const HOUR_MS = 3_600_000
/** The real time at the moment 0 of the monotonic clock. */
const REAL_MS = 1_800_000_000_500

/** A process whose wall clock is wrong by so much. */
function processOf(wrongByMs: number) {
  return { ...systemEnv, now: () => 0, wallMs: () => REAL_MS + wrongByMs }
}

/** By how much the process is wrong after the server has told a time that is wrong by so much. */
function errorMs(wrongByMs: number, toldWrongByMs: number): number {
  const clock = new ServerClock(processOf(wrongByMs))
  clock.set((REAL_MS + toldWrongByMs) / 1000, 0, 0)
  return clock.at(0) - REAL_MS
}

describe("the server's time by the clock of a client", () => {
  it('leaves a right clock alone, whatever of its whole seconds the server tells', () => {
    for (let toldMs = -3999; toldMs <= 999; toldMs += 100) expect(errorMs(0, toldMs)).toBe(0)
  })

  it('brings a wrong clock to within two seconds', () => {
    for (const wrongMs of [-HOUR_MS, HOUR_MS])
      for (let toldMs = -3000; toldMs <= 1000; toldMs += 100)
        expect(Math.abs(errorMs(wrongMs, toldMs))).toBeLessThanOrEqual(2000)
  })

  it('follows neither a wall clock that jumps nor a pause between two readings of it', () => {
    let [monotonic, wall] = [1000, REAL_MS]
    let pauses = 1
    const env = {
      ...systemEnv,
      now: () => monotonic,
      wallMs: () => {
        const read = wall
        if (pauses-- > 0) {
          monotonic += 300
          wall += 300
        }
        return read
      },
    }
    const clock = new ServerClock(env)
    expect(clock.at(monotonic)).toBe(wall)
    pauses = 1
    clock.set(Math.floor(wall / 1000), monotonic, monotonic)
    expect(clock.at(monotonic)).toBe(wall)
    wall += HOUR_MS
    expect(clock.at(monotonic)).toBe(wall - HOUR_MS)
  })
})

describeOn('memcached', 'the time that memcached tells', () => {
  it('is within the bounds in which a right clock is believed', async () => {
    const server = await startMemcached()
    onTestFinished(() => server.stop())
    const clock = new ServerClock(systemEnv)
    for (const startedAt = now(); now() - startedAt < 2500; await pass(20)) {
      const sentAt = systemEnv.now()
      clock.set(await server.stat('time'), sentAt, systemEnv.now())
      const before = systemEnv.wallMs()
      const told = clock.at(systemEnv.now())
      expect(told).toBeGreaterThan(before - 5)
      expect(told).toBeLessThan(systemEnv.wallMs() + 5)
    }
  })
})

describeOn('memcached', 'a client whose machine is suspended', () => {
  const NIGHT_MS = 8 * HOUR_MS

  /** A server, and clients of it: one on a machine that sleeps, one on another machine. */
  const startWorld = async () => {
    const process = await startMemcached()
    onTestFinished(() => process.stop())
    let sleptMs = 0
    class Server extends MemcachedServer {
      override async stats(group = ''): Promise<MemcachedStats> {
        const stats = await super.stats(group)
        return new Map(stats).set('time', `${Number(stats.get('time')) + sleptMs / 1000}`)
      }
    }
    const connectBy = (env: Env, heard: Push[] = []): MemcachedConnection => {
      const options = { host: '127.0.0.1', port: process.port, env, timeoutMs: 5000 }
      const backend = new MemcachedBackend({
        servers: [(onLoss) => new Server({ ...options, onLoss })],
        prefix: 'holdfast',
        retentionMs: 60_000,
        env,
        clock: null,
      })
      const push = (news: Push): void => void heard.push(news)
      const connection = new MemcachedConnection(backend, { id: env.id(), space: 's', push })
      onTestFinished(() => connection.close())
      return connection
    }
    const heard: Push[] = []
    const wallMs = (): number => systemEnv.wallMs() + sleptMs
    return {
      heard,
      sleeper: connectBy({ ...systemEnv, wallMs }, heard),
      other: connectBy({ ...systemEnv, wallMs, now: () => systemEnv.now() + sleptMs }),
      sleep: () => {
        sleptMs = NIGHT_MS
      },
    }
  }

  it('gets a whole lease after it, which others see', async () => {
    const { sleeper, other, sleep } = await startWorld()
    const before = await sleeper.claim(claimOf('door', 'before'))
    await sleeper.release('door', 'before')
    sleep()
    const after = await sleeper.claim(claimOf('door', 'after'))
    expect(await other.claim(claimOf('door', 'theirs', { mode: 'try' }))).toMatchObject({ reason: 'busy' })
    const apart = (after as { fence: number }).fence - (before as { fence: number }).fence
    expect(apart).toBeGreaterThan((NIGHT_MS - 1000) * 1000)
  })

  it('is told that it has lost its hold meanwhile', async () => {
    const { sleeper, other, sleep, heard } = await startWorld()
    await sleeper.claim(claimOf('door', 'mine'))
    sleep()
    expect(await other.claim(claimOf('door', 'theirs', { mode: 'try' }))).toMatchObject({ status: 'granted' })
    await eventually('the push', () => heard.length > 0)
    expect(heard).toEqual([{ type: 'lost', resource: 'door', id: 'mine' }])
  })
})
