/** Operation codes (`ZooDefs.OpCode`). */
export const Op = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  createContainer: 19,
  auth: 100,
  setWatches: 101,
  closeSession: -11,
  error: -1,
} as const

/** Transaction ids with a meaning of their own; those of requests count from 1. */
export const Xid = { notification: -1, ping: -2, auth: -4 } as const

export const LAST_XID = 2 ** 31 - 1

/** Errors of replies that mean something to more than the caller. */
export const Err = { noNode: -101, sessionExpired: -112 } as const

/** Bits of `CreateMode`. */
export const CreateFlag = { ephemeral: 1, sequential: 2, container: 4 } as const

/** Kinds of `WatcherEvent`. */
export const EventKind = { created: 1, deleted: 2, dataChanged: 3, childrenChanged: 4 } as const
