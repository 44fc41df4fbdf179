export type { HoldfastSettings } from '../settings.js'
export type { Callback } from './callback.js'
export type { Disposer } from './disposer.js'
export { LegacyLock as Lock } from './lock.js'
export { LockError } from './lock-error.js'
export {
  type LegacyOptions as Options,
  LegacyRedlock as default,
  LegacyRedlock as Redlock,
} from './redlock.js'
