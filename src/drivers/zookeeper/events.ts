import type { ZooKeeperError } from './errors.js'

/** News of the session, the same for all who share it. */
export type SessionEvent =
  /** The session is open. */
  | { readonly type: 'connected' }
  /**
   * The connection broke, or an answer is due and none has come since that monotonic time. The
   * session may be alive or not.
   */
  | { readonly type: 'suspected'; readonly since: number }
  /**
   * The servers answer again, on the old connection or a new one; the session and its watches are
   * the same.
   */
  | { readonly type: 'reconnected' }
  /** The server has ended the session, and its ephemeral nodes with it. Make a new client. */
  | { readonly type: 'expired' }
  /** By `close`, or because the server refused the authentication: then with the reason. */
  | { readonly type: 'closed'; readonly reason?: ZooKeeperError }

/** Told of the news of a session. */
export type SessionListener = (event: SessionEvent) => void

/** A session, as the servers know it. */
export interface SessionInfo {
  /** The number that the servers gave it. */
  readonly id: bigint
  /** Proves to the servers that a new connection belongs to the session. */
  readonly password: Buffer
  /** As negotiated: the server may set another one than was asked for. */
  readonly timeoutMs: number
}

/** Who the client is, for the ACLs of the nodes. */
export interface Credentials {
  /** `digest`, unless the servers know others. */
  readonly scheme: string
  /** For `digest`: `user:password`. */
  readonly credentials: string
}
