import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { eventually } from '../../src/testing/conformance/checks.js'
import { isRunning, killAfterwards } from '../cli/processes.js'
import { describeOn } from './availability.js'

/**
 * A run starts itself, a PostgreSQL, two Redis and three Sentinels, beside everything else that
 * runs here.
 */
const START_LIMIT_MS = 90_000
const LIMIT = { timeout: START_LIMIT_MS + 120_000 }
const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-orphans-'))

interface Started {
  worker: number
  servers: { pid: number; folder: string }[]
  /** Processes of one of the servers. */
  sessions: number[]
}

/** A run of its own, in which servers have been started. */
async function startRun(name: string): Promise<{ pid: number } & Started> {
  const file = join(folder, name)
  const args = ['scripts/test.mjs', '--config', 'test/servers/orphans/vitest.config.ts']
  const env = { ...process.env, HOLDFAST_ORPHANS: file }
  const { pid } = spawn(process.execPath, args, { cwd: root, env, stdio: 'ignore' })
  if (pid === undefined) throw new Error('no process')
  killAfterwards(pid)
  await eventually('the servers of the run', () => existsSync(file), START_LIMIT_MS)
  const started: Started = JSON.parse(readFileSync(file, 'utf8'))
  return { pid, ...started }
}

describeOn('redis', 'servers of a run that is killed', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each(['SIGKILL', 'SIGTERM'] as const)('end with it: %s', LIMIT, async (signal) => {
    const { pid, worker, servers, sessions } = await startRun(signal)
    // One of them was killed by the run itself.
    expect(servers.filter((server) => isRunning(server.pid))).toHaveLength(servers.length - 1)
    process.kill(pid, signal)
    await eventually('the end of the worker', () => !isRunning(worker))
    await eventually('the end of the servers', () => !servers.some((server) => isRunning(server.pid)))
    await eventually('the end of their sessions', () => !sessions.some(isRunning))
    await eventually('no folder left', () => !servers.some((server) => existsSync(server.folder)))
  })

  it('end when only the worker is killed', LIMIT, async () => {
    const { worker, servers } = await startRun('worker')
    process.kill(worker, 'SIGKILL')
    await eventually('the end of the servers', () => !servers.some((server) => isRunning(server.pid)))
  })
})
