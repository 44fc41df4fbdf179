import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { missingRuntimes, RUNTIMES } from '../../scripts/runtimes.mjs'
import { Child, type RuntimeName, request, tempFolder } from './sqlite/helpers.js'

const NAMES: RuntimeName[] = ['node', 'bun', 'deno']
const LEASE_MS = 1000

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6

const missing = missingRuntimes()
const why = missing === null ? '' : ` (skipped: ${missing})`

describe.skipIf(missing !== null)(`processes of different runtimes${why}`, () => {
  it.each(NAMES)('read the same clock: %s', async (runtime) => {
    const child = new Child(['clock', tempFolder().path('locks.db')], { runtime })
    expect(await child.next()).toBe('ready')
    for (let round = 0; round < 20; round += 1) {
      const before = nowMs()
      child.send('clock')
      const read = await child.next<number>()
      expect(read).toBeGreaterThanOrEqual(before)
      expect(read).toBeLessThanOrEqual(nowMs())
    }
  })

  it.each(NAMES)('do not hold together: %s, and a younger process of each', async (runtime) => {
    const files = NAMES.map(() => tempFolder().path('locks.db'))
    const older = await Promise.all(files.map((path) => start(path, runtime)))
    // A lease of a younger process would be over by now, if each of them counted from its own start.
    await delay(1.5 * LEASE_MS)
    const younger = await Promise.all(files.map((path, index) => start(path, NAMES[index] ?? 'node')))
    await Promise.all(
      younger.map(async (young, index) => {
        const old = older[index] ?? young
        await passesAtEndOfLease(young, old)
        await passesAtEndOfLease(old, young)
      }),
    )
  })

  const readCode = `--allow-read=${fileURLToPath(new URL('../..', import.meta.url))}`
  it.each([[readCode], [readCode, '--allow-ffi'], ['--allow-read', '--allow-ffi']])(
    'are refused under Deno with %j, which keeps the clock or the start of the machine from them',
    (...permissions) => {
      const { href } = new URL('../../dist/import/sqlite.mjs', import.meta.url)
      const input = `import { sqlite } from '${href}'
        try { sqlite('./locks.db') } catch ({ code, message }) { console.log(code, message) }`
      const args = ['run', '--no-prompt', '--no-lock', ...permissions, '-']
      const said = execFileSync(RUNTIMES.deno.execPath, args, { input, encoding: 'utf8' })
      expect(said).toMatch(/^UNSUPPORTED .*Deno.*--allow-all/)
    },
  )
})

/** A process that has opened the file. */
async function start(path: string, runtime: RuntimeName): Promise<Child> {
  const child = new Child(['calls', path], { runtime })
  expect(await child.next()).toBe('ready')
  child.send(['pulse', []])
  expect(await child.next()).toEqual([])
  return child
}

async function passesAtEndOfLease(holder: Child, other: Child): Promise<void> {
  const sentAt = nowMs()
  holder.send(['claim', request('r', 'held', { leaseMs: LEASE_MS, mode: 'try' })])
  expect(await holder.next()).toMatchObject({ status: 'granted', leaseMs: LEASE_MS })
  for (;;) {
    other.send(['claim', request('r', 'taken', { mode: 'try' })])
    const { status } = await other.next<{ status: string }>()
    if (status === 'granted') break
    await delay(20)
  }
  expect(nowMs() - sentAt).toBeGreaterThan(LEASE_MS)
  other.send(['release', 'r', 'taken'])
  expect(await other.next()).toBe(true)
}
