import { it } from 'vitest'
import { expectCompiles } from '../project/compiler.js'

/** Compiled with the types of a browser, as in the code of a web application. */
const CODE = `
import { Holdfast } from 'holdfast'
import { memory } from 'holdfast/memory'
import { LockManager as AcrossMachines } from 'holdfast/web-locks'

export async function written(locks: LockManager): Promise<number> {
  await locks.request('a', { mode: 'shared', signal: AbortSignal.timeout(5) }, (lock: Lock | null) => lock?.name)
  return locks.request('a', async (lock) => (lock ? 1 : 2))
}

const locks = new AcrossMachines(new Holdfast(memory()))
export const ours: number = await written(locks)
export const place: Pick<Navigator, 'locks'> = { locks }
export const state: LockManagerSnapshot = await locks.query()
export const name: string = await locks.request('a', async (lock) => lock.name)
export const fence: number | undefined = await locks.request('a', { ifAvailable: true }, (lock) => lock?.fence)
// @ts-expect-error there is no such mode
void locks.request('a', { mode: 'exlusive' }, () => {})
`

it('a LockManager of ours can stand where the one of a browser is expected', () =>
  expectCompiles(CODE, { lib: ['ES2023', 'ESNext.Disposable', 'DOM'] }))
