import type { Holdfast } from '../../primitives/holdfast.js'
import type { InterceptedStore } from './intercepted-store.js'
import type { Scene } from './scene.js'

/** At most so many neighbours are served by one grant while others wait. */
export const BOUND = 64
/**
 * And for so long. A machine that stands still ends turns by that, which are then shorter than the
 * bound.
 */
export const TURN_MS = 50

/** A client that passes holds on, over a store that the case can disturb. */
export function cohort(
  scene: Scene,
  options: Parameters<Scene['intercepted']>[0] = {},
): { locks: Holdfast; store: InterceptedStore } {
  return scene.intercepted({ ...options, order: 'cohort' })
}
