import { checkName } from '../base/names.js'
import { checkOptions } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { LockContext } from './entrance.js'
import { Lock } from './lock.js'
import { checkOrder, LOCK_OPTIONS, type LockOptions } from './options.js'

/** A mutual exclusion lock: at most one holder, re-entrant within `run`. Keeps no state of its own. */
export class Mutex extends Lock {
  /** Made by `locks.mutex(name)`. */
  constructor(context: LockContext, name: string, options: LockOptions = {}) {
    super(context, {
      resource: checkName(name, 'The name of a mutex'),
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      isReentrant: true,
      order: checkOrder(checkOptions(options, LOCK_OPTIONS, "{ order: 'strict' }").order) ?? context.order,
    })
  }
}
