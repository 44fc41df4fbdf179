import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { CountingEnv, eventually, inTime, now, pass, Watched } from '../../src/testing/conformance/checks.js'
import { WorkerClient } from '../../src/testing/worker-client.js'
import { WallClock } from '../servers/wall-clock.js'

const LEASE_MS = 2500
const HOURS = [1, -1, 24, 0]

const folder = mkdtempSync(join(tmpdir(), 'holdfast-wall-clock-'))
const clock = new WallClock()
const noShim = clock.obstacle
const workers: WorkerClient[] = []

afterAll(async () => {
  for (const worker of workers) await worker.end()
  clock.dispose()
  rmSync(folder, { recursive: true, force: true })
})

function setWallClock(hours: number): void {
  clock.set(hours * 3600)
}

async function worker(url: string): Promise<WorkerClient> {
  const started = await WorkerClient.start({ env: clock.env })
  workers.push(started)
  await started.call('open', { url, storeModule: null }, {})
  return started
}

/** The process sees the moved clock; without that, the rest would show nothing. */
async function expectClock(process: WorkerClient, hours: number): Promise<void> {
  const { wallMs } = await process.call('clock')
  expect(Math.abs(wallMs - Date.now() - hours * 3_600_000)).toBeLessThan(60_000)
}

describe('sqlite, with the wall clock of its processes moved', () => {
  it.skipIf(noShim !== null)(
    `neither ends a hold nor freezes a waiter${noShim ? ` (skipped: ${noShim})` : ''}`,
    async () => {
      const url = `sqlite:${join(folder, 'steps.db')}`
      const [holder, waiter] = [await worker(url), await worker(url)]
      const first = await holder.call('acquire', 'door', { lease: LEASE_MS })
      const second = new Watched(waiter.call('acquire', 'door', { lease: LEASE_MS }))
      for (const hours of HOURS) {
        setWallClock(hours)
        await expectClock(holder, hours)
        await pass(1.3 * LEASE_MS)
        expect(await holder.call('look', first.hold)).toMatchObject({ isValid: true, isAborted: false })
        expect(second.isSettled).toBe(false)
      }
      setWallClock(-1)
      expect(await holder.call('release', first.hold)).toBe(true)
      const { fence } = await inTime('the waiter', second.promise)
      expect(fence).toBeGreaterThan(first.fence)
    },
    120_000,
  )

  it.skipIf(noShim !== null)(
    `a dead holder's lease ends on time${noShim ? ` (skipped: ${noShim})` : ''}`,
    async () => {
      const url = `sqlite:${join(folder, 'deaths.db')}`
      const survivor = await worker(url)
      for (const hours of HOURS) {
        setWallClock(0)
        const victim = await worker(url)
        const claimedAfter = now()
        await victim.call('acquire', 'door', { lease: LEASE_MS })
        const waiting = survivor.call('acquire', 'door', { lease: LEASE_MS })
        await victim.kill()
        setWallClock(hours)
        const next = await inTime('the lease of the dead holder', waiting)
        expect(next.at - claimedAfter).toBeGreaterThanOrEqual(LEASE_MS)
        await survivor.call('release', next.hold)
      }
    },
    120_000,
  )
})

describe('memory, with the wall clock moved', () => {
  it('neither ends a hold nor freezes a waiter', async () => {
    const env = new CountingEnv()
    const store = memory({ env })
    const [one, two] = [new Holdfast(store, { env }), new Holdfast(store, { env })]
    const hold = await one.mutex('door').acquire({ lease: LEASE_MS })
    const waiter = new Watched(two.mutex('door').acquire({ lease: LEASE_MS }))
    for (const hours of HOURS) {
      env.wallOffsetMs = hours * 3_600_000
      const until = now() + 0.7 * LEASE_MS
      await eventually('some renewals', () => now() > until || !hold.isValid)
      expect(hold.isValid).toBe(true)
      expect(waiter.isSettled).toBe(false)
    }
    env.wallOffsetMs = -3_600_000
    expect(await hold.release()).toBe(true)
    expect((await inTime('the waiter', waiter.promise)).fence).toBeGreaterThan(hold.fence)
    await Promise.all([one.close(), two.close()])
  })
})
