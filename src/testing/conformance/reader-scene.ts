import { deferred } from '../../base/deferred.js'
import type { Beat } from '../../contract/store.js'
import type { Lock } from '../../primitives/lock.js'
import type { Call, InterceptedStore } from './intercepted-store.js'
import { LONG_MS, type Scene } from './scene.js'

/**
 * From now on no pulse is answered before `pass` is called; each call lets those through that have
 * been made by then.
 */
export function holdAnswers(store: InterceptedStore): { pass(): void } {
  let gate = deferred<void>()
  store.around = async (call, go) => {
    const { promise } = gate
    const reply = await go()
    if (call.method === 'pulse') await promise
    return reply
  }
  const pass = (): void => {
    gate.resolve()
    gate = deferred<void>()
  }
  return { pass }
}

/** Readers and writers of one client, over a store that the case can disturb. */
export function readers(
  scene: Scene,
  storeTimeout = LONG_MS,
): { read: Lock; write: Lock; store: InterceptedStore; locks: ReturnType<Scene['client']> } {
  const { locks, store } = scene.intercepted({ order: 'cohort', storeTimeout })
  const { read, write } = locks.readWrite('config')
  return { read, write, store, locks }
}

export function asksForFences({ method, about }: Call): boolean {
  return method === 'pulse' && (about as readonly Beat[]).some(({ block }) => block !== undefined)
}
