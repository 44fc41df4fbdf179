import { checkFenced, type Fenced, type FenceRegister, refuseStale } from './fenced.js'

/** A register in this process. It is synchronous. */
export interface MemoryGuard extends FenceRegister {
  check(hold: Fenced): void
}

/**
 * Remembers fences in this process: for tests, and for a service with a single process. It keeps
 * one number for each resource until the process ends.
 *
 * @example
 * ```ts
 * import { memoryGuard } from 'holdfast/fence'
 *
 * const guard = memoryGuard()
 * guard.check({ resource: 'order:42', fence: 7 })
 * ```
 */
export function memoryGuard(): MemoryGuard {
  const newest = new Map<string, number>()
  return {
    check(hold: Fenced): void {
      const { resource, fence } = checkFenced(hold)
      refuseStale(hold, newest.get(resource) ?? 0)
      newest.set(resource, fence)
    },
  }
}
