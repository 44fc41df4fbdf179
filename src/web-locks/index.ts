export { Lock } from './lock.js'
export { LockManager } from './lock-manager.js'
export type {
  LockGrantedCallback,
  LockInfo,
  LockManagerOptions,
  LockManagerSnapshot,
  LockMode,
  LockOptions,
} from './types.js'
