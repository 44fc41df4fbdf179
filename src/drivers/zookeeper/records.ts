import type { JuteReader, JuteWriter } from './jute.js'

/** The metadata of a node (`org.apache.zookeeper.data.Stat`). */
export interface Stat {
  /** The transaction that created the node. */
  readonly czxid: bigint
  /** The transaction that last changed its data. */
  readonly mzxid: bigint
  /** The transaction that last added or removed a child. */
  readonly pzxid: bigint
  /** Wall clock of the leader, in milliseconds since 1970. */
  readonly ctimeMs: number
  readonly mtimeMs: number
  /** How often the data was changed. */
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  /** The session that an ephemeral node belongs to; 0 for other nodes. */
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
}

/** Who may do what with a node. `perms` is a sum of `Perms`. */
export interface Acl {
  readonly perms: number
  readonly scheme: string
  readonly id: string
}

export interface ConnectRequest {
  readonly lastZxid: bigint
  readonly timeoutMs: number
  readonly sessionId: bigint
  readonly password: Buffer
}

export interface ConnectResponse {
  /** 0 or less: the session has expired. */
  readonly timeoutMs: number
  readonly sessionId: bigint
  readonly password: Buffer
}

export interface ReplyHeader {
  readonly xid: number
  readonly zxid: bigint
  readonly error: number
}

export interface WatcherEvent {
  readonly kind: number
  readonly path: string
}

export interface SetWatches {
  readonly relativeZxid: bigint
  readonly data: readonly string[]
  readonly exists: readonly string[]
  readonly children: readonly string[]
}

const PROTOCOL_VERSION = 0

export function writeConnectRequest(out: JuteWriter, request: ConnectRequest): void {
  out.int(PROTOCOL_VERSION).long(request.lastZxid).int(request.timeoutMs).long(request.sessionId)
  // Not read-only: a server without a quorum would answer with outdated data.
  out.buffer(request.password).bool(false)
}

export function readConnectResponse(input: JuteReader): ConnectResponse {
  input.int()
  return { timeoutMs: input.int(), sessionId: input.long(), password: input.buffer() }
}

export function readReplyHeader(input: JuteReader): ReplyHeader {
  return { xid: input.int(), zxid: input.long(), error: input.int() }
}

export function readWatcherEvent(input: JuteReader): WatcherEvent {
  const kind = input.int()
  input.int()
  return { kind, path: input.string() }
}

export function writeSetWatches(out: JuteWriter, watches: SetWatches): void {
  out.long(watches.relativeZxid)
  for (const paths of [watches.data, watches.exists, watches.children])
    out.vector(paths, (path) => out.string(path))
}

export function readStat(input: JuteReader): Stat {
  const [czxid, mzxid] = [input.long(), input.long()]
  const [ctimeMs, mtimeMs] = [input.longNumber(), input.longNumber()]
  const [version, cversion, aversion] = [input.int(), input.int(), input.int()]
  const ephemeralOwner = input.long()
  const [dataLength, numChildren] = [input.int(), input.int()]
  const pzxid = input.long()
  // biome-ignore format: as the record is
  return { czxid, mzxid, pzxid, ctimeMs, mtimeMs, version, cversion, aversion, ephemeralOwner, dataLength, numChildren }
}

export function writeAcls(out: JuteWriter, acls: readonly Acl[]): void {
  out.vector(acls, ({ perms, scheme, id }) => out.int(perms).string(scheme).string(id))
}

export function readAcls(input: JuteReader): Acl[] {
  return input.vector(() => ({ perms: input.int(), scheme: input.string(), id: input.string() }))
}
