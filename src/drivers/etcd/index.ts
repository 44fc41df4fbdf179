export { EtcdClient } from './client.js'
export { EtcdError, type EtcdErrorCode, type EtcdErrorDetails } from './errors.js'
export type { EtcdLease } from './lease.js'
export type { EtcdOptions } from './options.js'
export type { EtcdTransaction, Key, KeyCompare, Operation, RangeOperation } from './requests.js'
export type {
  AnswerHeader,
  ClusterMember,
  KeyEvent,
  KeyPage,
  KeyValue,
  OperationResult,
  ServerStatus,
  TransactionResult,
} from './responses.js'
export type { KeyWatch } from './watch-stream.js'
