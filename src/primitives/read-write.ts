import { checkName } from '../base/names.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { Lock } from './lock.js'
import { type LockOptions, lockOptions } from './options.js'
import type { LockContext } from './reentry.js'

/** What a reader takes of a lock that a writer takes whole. */
export const SHARED = 1

/**
 * Readers share, a writer is alone. Fair: a waiting writer stops later readers, and the readers next to each other in line enter
 * together. A writer may read inside its hold, and may `downgrade()` it; a reader that asks for writing is refused with
 * UPGRADE_REFUSED. A mutex of the same name is the same lock as the write side.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const config = new Holdfast(memory()).readWrite('config')
 * await config.read.run(async () => console.log('many read at once'))
 * await config.write.run(async (hold) => console.log('one writes, with fence', hold.fence))
 * ```
 */
export class ReadWriteLock {
  /** The name of what is locked. */
  readonly name: string
  /** The shared side: any number of readers at once. */
  readonly read: Lock
  /** The exclusive side: one writer, and no reader. */
  readonly write: Lock

  /** Made by `locks.readWrite(name)`. */
  constructor(context: LockContext, name: string, options: LockOptions = {}) {
    this.name = checkName(name, 'The name of a read-write lock')
    const { order, lingerMs } = lockOptions(options, context)
    const kind = { resource: name, capacity: EXCLUSIVE, isReentrant: true, order }
    // A reader needs a fence from after it has asked, so it would save no round trip.
    this.read = new Lock(context, { ...kind, permits: SHARED })
    this.write = new Lock(context, { ...kind, permits: EXCLUSIVE, lingerMs })
  }
}
