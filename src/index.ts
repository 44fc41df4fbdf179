export type { Duration } from './base/duration.js'
export { type ErrorCode, HoldfastError } from './base/errors.js'
export type {
  AcquireContext,
  AcquireOutcome,
  HoldContext,
  HoldEnd,
  LockDetails,
  Primitive,
  PulseContext,
  RunContext,
  StaleFence,
  StoreFailure,
} from './base/events.js'
export type { Finding } from './contract/store.js'
export type { Barrier, MeetOptions } from './primitives/barrier.js'
export type { CampaignOptions, Election, ObserveOptions } from './primitives/election.js'
export type { Hold } from './primitives/hold.js'
export { type CloseOptions, Holdfast, type HoldfastOptions, type PingOptions } from './primitives/holdfast.js'
export type { Latch, LatchOptions, WaitOptions } from './primitives/latch.js'
export type { Leader, Leadership } from './primitives/leadership.js'
export type { Lock } from './primitives/lock.js'
export type { LockedDecorator, NameOf } from './primitives/locked.js'
export type { MultiHold } from './primitives/multi-hold.js'
export type { MultiLock } from './primitives/multi-lock.js'
export type { Mutex } from './primitives/mutex.js'
export type { OnceOptions, OnceOutcome } from './primitives/once.js'
export type { AcquireOptions, HoldOptions, LockOptions, LockOrder, TryOptions } from './primitives/options.js'
export type {
  BarrierView,
  ElectionView,
  LatchView,
  OnceStart,
  OnceView,
  Overview,
  PastLeader,
} from './primitives/overview.js'
export type { ReadWriteLock } from './primitives/read-write.js'
export type { Semaphore, SemaphoreAcquireOptions, SemaphoreTryOptions } from './primitives/semaphore.js'
export type { StripedLock } from './primitives/striped.js'
export type { HolderView, ResourceView, WaiterView } from './primitives/views.js'
