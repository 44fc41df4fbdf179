import { checkName } from '../base/names.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { Lock } from './lock.js'
import { type LockOptions, lockOptions } from './options.js'
import type { LockContext } from './reentry.js'

/** A mutual exclusion lock: at most one holder, re-entrant within `run`. */
export class Mutex extends Lock {
  /** Made by `locks.mutex(name)`. */
  constructor(context: LockContext, name: string, options: LockOptions = {}) {
    super(context, {
      resource: checkName(name, 'The name of a mutex'),
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      isReentrant: true,
      ...lockOptions(options, context),
    })
  }
}
