export { type HoldfastHealth, HoldfastHealthIndicator, type PingCheckOptions } from './health.js'
export { Locked, type LockedMethodDecorator, type LockedOptions } from './locked.js'
export { HoldfastModule } from './module.js'
export {
  OncePerCluster,
  type OncePerClusterDecorator,
  type OncePerClusterOptions,
} from './once-per-cluster.js'
export type {
  HoldfastClientOptions,
  HoldfastModuleAsyncOptions,
  HoldfastModuleOptions,
  HoldfastProviderOptions,
} from './options.js'
export { getHoldfastToken, InjectHoldfast } from './tokens.js'
