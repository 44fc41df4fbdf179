import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { pass } from '../../src/testing/conformance/checks.js'

/** Enters the lock once, runs the work inside, and leaves. */
export type Contender = (work: () => Promise<void>) => Promise<void>

const WORK_MS = 5

/** How often each contender was inside, of so many entries in all. They all come back as soon as they have left. */
export async function sharesOf(contenders: readonly Contender[], entries: number): Promise<number[]> {
  const shares = contenders.map(() => 0)
  let [inside, entered] = [0, 0]
  const loops = contenders.map(async (enter, index) => {
    while (entered < entries)
      await enter(async () => {
        expect(++inside).toBe(1)
        entered++
        shares[index] = (shares[index] ?? 0) + 1
        await pass(WORK_MS)
        inside--
      })
  })
  await Promise.all(loops)
  return shares
}

/** The first of them must have had its part. The others wait inside the server, which serves in the order of arrival. */
export function expectEqualShare(shares: readonly number[]): void {
  const entries = shares.reduce((sum, each) => sum + each, 0)
  const equal = entries / shares.length
  expect((shares[0] ?? 0) / equal, `entries: ${shares.join(', ')}`).toBeGreaterThanOrEqual(0.8)
}

/** A process of its own that waits for the lock. */
export function waitElsewhere(store: 'mysql' | 'postgres', url: string, name: string): ChildProcess {
  const child = fork(fileURLToPath(new URL('session-waiter.mjs', import.meta.url)), [store, url, name])
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}
