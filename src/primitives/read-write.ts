import { checkName } from '../base/names.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { Lock } from './lock.js'
import { type LockOptions, lockOptions } from './options.js'
import type { LockContext } from './reentry.js'

/** The permits of a reader; a writer takes all. */
export const SHARED = 1

/**
 * Many readers share it, or one writer has it alone. It is fair: readers that arrive after a
 * waiting writer queue behind it, and readers next to each other in line enter together. A writer
 * may read inside its hold, and may `downgrade()` it. A reader that asks to write is refused with
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
    // Readers do not linger: a reader needs a fence from after its request, so it saves no round
    // trip.
    this.read = new Lock(context, { ...kind, permits: SHARED })
    this.write = new Lock(context, { ...kind, permits: EXCLUSIVE, lingerMs, primitive: 'write' })
  }
}
