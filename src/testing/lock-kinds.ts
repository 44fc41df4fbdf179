import type { Holdfast } from '../primitives/holdfast.js'
import type { Lock } from '../primitives/lock.js'

/** Which lock to take, in a form that travels to other processes. */
export type LockKind =
  | { readonly kind: 'mutex' | 'read' | 'write' }
  | { readonly kind: 'semaphore'; readonly capacity: number }

export const MUTEX: LockKind = { kind: 'mutex' }

/** The lock of that kind and name. */
export function lockOf(locks: Holdfast, name: string, lock: LockKind): Lock {
  switch (lock.kind) {
    case 'mutex':
      return locks.mutex(name)
    case 'read':
      return locks.readWrite(name).read
    case 'write':
      return locks.readWrite(name).write
    case 'semaphore':
      return locks.semaphore(name, lock.capacity)
  }
}
