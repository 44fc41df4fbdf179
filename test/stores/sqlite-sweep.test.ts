import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { ask, connect, openRaw, request, tempFolder, testEnv } from './sqlite/helpers.js'

describe('what the dead leave behind', () => {
  it('is swept by the next one who opens the file', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    const [dead, alive] = [connect(sqlite(path, { env })), connect(sqlite(path, { env }))]
    for (let index = 0; index < 20; index += 1) await dead.claim(request(`r${index}`, '1'))
    await alive.claim(request('r0', '2'))
    await dead.write({ key: 'kept', expect: null, value: 'x', retentionMs: null })
    await dead.write({ key: 'ended', expect: null, value: 'x', retentionMs: 1000 })
    await dead.read('watched', true)
    await alive.evict('r0', null)
    const deadEnd = leaveDeadEnd(`${path}-wires`)

    env.nowMs += 3_600_000
    await connect(sqlite(path, { env })).pulse([])
    const raw = await openRaw(path)
    await vi.waitFor(() => {
      expect(ask(raw, 'SELECT count(*) FROM claim')).toBe(0)
      expect(ask(raw, 'SELECT count(*) FROM watcher')).toBe(0)
      expect(ask(raw, 'SELECT count(*) FROM state')).toBe(1)
      expect(readdirSync(`${path}-wires`)).not.toContain(deadEnd)
      // The ends of the living stay.
      expect(readdirSync(`${path}-wires`)).toHaveLength(2)
    }, 30_000)
  })

  it('is swept for as long as much is left', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    const timers: (() => void)[] = []
    const ticking = Object.assign(env, {
      timer: (ms: number, run: () => void) => {
        if (ms === 60_000) timers.push(run)
        else setTimeout(run, ms)
        return () => {}
      },
    })
    await connect(sqlite(path, { env: ticking })).pulse([])
    const raw = await openRaw(path)
    ask(
      raw,
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) INSERT INTO state (space, key, value, version, expires) SELECT 's', i, 'x', i, 1 FROM n RETURNING 1",
    )
    env.nowMs += 60_000
    timers.shift()?.()
    await vi.waitFor(() => expect(ask(raw, 'SELECT count(*) FROM state')).toBe(0), 30_000)
  })

  it('does not include the watches of a client that only waits', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    const timers: (() => void)[] = []
    const ticking = Object.assign(env, {
      timer: (ms: number, run: () => void) => {
        if (ms === 60_000) timers.push(run)
        else setTimeout(run, ms)
        return () => {}
      },
    })
    const watcher = connect(sqlite(path, { env: ticking }))
    await watcher.read('k', true)
    const raw = await openRaw(path)
    await vi.waitFor(() => expect(timers).toHaveLength(1), 30_000)
    for (let minute = 1; minute <= 20; minute += 1) {
      env.nowMs += 60_000
      timers.shift()?.()
      await vi.waitFor(() => expect(ask(raw, 'SELECT seen FROM watcher')).toBe(env.nowMs), 30_000)
    }
  })
})

/** What a killed process leaves: a socket that nobody listens on. */
function leaveDeadEnd(folder: string): string {
  const script = `require('node:net').createServer().listen('${folder}/0123', () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  expect(readdirSync(folder)).toContain('0123')
  return '0123'
}
