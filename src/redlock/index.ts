export { ExecutionError, ResourceLockedError } from './errors.js'
export { Lock } from './lock.js'
export {
  Redlock,
  Redlock as default,
  type RedlockAbortSignal,
  type RedlockSettings,
  type Routine,
} from './redlock.js'
export type { HoldfastSettings, Settings, SomeSettings } from './settings.js'
export type { ClientExecutionResult, ExecutionResult, ExecutionStats } from './votes.js'
