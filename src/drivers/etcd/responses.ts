import { ProtoReader } from './protobuf.js'

/** A key with its value. */
export interface KeyValue {
  /** The key, read as UTF-8. */
  readonly key: string
  /** Empty where only keys were asked for. */
  readonly value: Buffer
  /** The revision that made the key; a later value does not change it. */
  readonly createRevision: number
  /** The revision of its last change. */
  readonly modRevision: number
  /** 0: none. */
  readonly lease: bigint
}

/** What every answer tells. */
export interface AnswerHeader {
  /** Of the store, after the request. */
  readonly revision: number
  /** Counts the leaders. */
  readonly raftTerm: number
}

/** The answer to one operation of a transaction. */
export interface OperationResult {
  /** Of a read: the keys that were found. */
  readonly keys: readonly KeyValue[]
  /**
   * Of a read: how many keys the range has, whatever its limit. Of a delete: how many it removed.
   */
  readonly count: number
  /** Of a transaction: whether its comparisons were true. */
  readonly succeeded: boolean
  /** Of a transaction: the answers to its operations. */
  readonly results: readonly OperationResult[]
}

/** A part of a range of keys. */
export interface KeyPage {
  /** In the order of their bytes. */
  readonly keys: readonly KeyValue[]
  /** Of the answer. */
  readonly revision: number
  /** The first key that may come after these; null: these were all. */
  readonly next: Buffer | null
}

/** The answer to a transaction. */
export interface TransactionResult {
  /** Of the answer. */
  readonly header: AnswerHeader
  /** Whether the comparisons were true. */
  readonly succeeded: boolean
  /** One for each operation that was done. */
  readonly results: readonly OperationResult[]
}

/** A change of a watched key. */
export interface KeyEvent {
  /** What has happened. */
  readonly type: 'put' | 'delete'
  /** The key; of a deleted one only its name and the revision of the deletion. */
  readonly kv: KeyValue
}

export interface WatchAnswer {
  readonly watchId: number
  readonly isCreated: boolean
  readonly isCancelled: boolean
  /** The oldest revision that is left, where the watch asked for an older one. */
  readonly compactRevision: number
  readonly reason: string
  readonly events: readonly KeyEvent[]
}

export interface LeaseAnswer {
  readonly header: AnswerHeader
  readonly id: bigint
  readonly ttlSeconds: number
}

/** One server of the cluster. */
export interface ClusterMember {
  /** Its name; empty: it has not started yet. */
  readonly name: string
  /** Where clients reach it. */
  readonly clientUrls: readonly string[]
  /** It has no vote. */
  readonly isLearner: boolean
}

/** What a server tells about itself. */
export interface ServerStatus {
  /** Such as `3.4.23`. */
  readonly version: string
  /** Of its database file. */
  readonly dbBytes: number
  /** What it complains about. */
  readonly errors: readonly string[]
}

type FieldReaders = Readonly<Record<number, (reader: ProtoReader) => void>>

/** Calls the reader of each field, and skips the fields that have none. */
function readFields(reader: ProtoReader, fields: FieldReaders): void {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    const read = fields[field]
    if (read) read(reader)
    else reader.skip()
  }
}

export function readTransaction(bytes: Buffer): TransactionResult {
  const reader = new ProtoReader(bytes)
  const results: OperationResult[] = []
  let [header, succeeded] = [NO_HEADER, false]
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) header = readHeader(reader.message())
    else if (field === 2) succeeded = reader.int() === 1
    else if (field === 3) results.push(readOperation(reader.message()))
    else reader.skip()
  }
  return { header, succeeded, results }
}

/** The bytes of the last key in the answer to a read: not every key is text. */
export function readLastKey(bytes: Buffer): Buffer | null {
  let last: Buffer | null = null
  const inside =
    (field: number, read: (reader: ProtoReader) => void) =>
    (reader: ProtoReader): void =>
      readFields(reader.message(), { [field]: read })
  const onKey = (reader: ProtoReader): void => {
    last = reader.bytes()
  }
  // The key of a key-value, in a range, in an operation, in the transaction.
  readFields(new ProtoReader(bytes), { 3: inside(1, inside(2, inside(1, onKey))) })
  return last
}

const NO_HEADER: AnswerHeader = { revision: 0, raftTerm: 0 }
const NO_RESULT: OperationResult = { keys: [], count: 0, succeeded: false, results: [] }
type ResultKind = 'range' | 'put' | 'delete' | 'txn'
const RESULT_KINDS: readonly ResultKind[] = ['range', 'put', 'delete', 'txn']

/** The headers inside a transaction tell nothing that its own does not. */
function readResult(reader: ProtoReader, kind: ResultKind): OperationResult {
  if (kind === 'put') return NO_RESULT
  const keys: KeyValue[] = []
  const results: OperationResult[] = []
  let [count, succeeded] = [0, false]
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (kind === 'range' && field === 2) keys.push(readKeyValue(reader.message()))
    else if (kind === 'range' && field === 4) count = reader.int()
    else if (kind === 'delete' && field === 2) count = reader.int()
    else if (kind === 'txn' && field === 2) succeeded = reader.int() === 1
    else if (kind === 'txn' && field === 3) results.push(readOperation(reader.message()))
    else reader.skip()
  }
  return { keys, count, succeeded, results }
}

function readOperation(reader: ProtoReader): OperationResult {
  const kind = RESULT_KINDS[reader.next() - 1]
  return kind ? readResult(reader.message(), kind) : NO_RESULT
}

function readHeader(reader: ProtoReader): AnswerHeader {
  let [revision, raftTerm] = [0, 0]
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 3) revision = reader.int()
    else if (field === 4) raftTerm = reader.int()
    else reader.skip()
  }
  return { revision, raftTerm }
}

function readKeyValue(reader: ProtoReader): KeyValue {
  let [key, lease] = ['', 0n]
  let value: Buffer = Buffer.alloc(0)
  let [createRevision, modRevision] = [0, 0]
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) key = reader.text()
    else if (field === 2) createRevision = reader.int()
    else if (field === 3) modRevision = reader.int()
    else if (field === 5) value = reader.bytes()
    else if (field === 6) lease = reader.long()
    else reader.skip()
  }
  return { key, value, createRevision, modRevision, lease }
}

export function readWatch(bytes: Buffer): WatchAnswer {
  const events: KeyEvent[] = []
  let [watchId, compactRevision, reason] = [0, 0, '']
  let [isCreated, isCancelled] = [false, false]
  readFields(new ProtoReader(bytes), {
    2: (reader) => {
      watchId = reader.int()
    },
    3: (reader) => {
      isCreated = reader.int() === 1
    },
    4: (reader) => {
      isCancelled = reader.int() === 1
    },
    5: (reader) => {
      compactRevision = reader.int()
    },
    6: (reader) => {
      reason = reader.text()
    },
    11: (reader) => events.push(readEvent(reader.message())),
  })
  return { watchId, isCreated, isCancelled, compactRevision, reason, events }
}

function readEvent(reader: ProtoReader): KeyEvent {
  let type: KeyEvent['type'] = 'put'
  let kv: KeyValue | undefined
  readFields(reader, {
    1: (fields) => {
      if (fields.int() === 1) type = 'delete'
    },
    2: (fields) => {
      kv = readKeyValue(fields.message())
    },
  })
  return { type, kv: kv ?? readKeyValue(new ProtoReader(Buffer.alloc(0))) }
}

export function readLease(bytes: Buffer): LeaseAnswer {
  let header: AnswerHeader = { revision: 0, raftTerm: 0 }
  let [id, ttlSeconds] = [0n, 0]
  readFields(new ProtoReader(bytes), {
    1: (reader) => {
      header = readHeader(reader.message())
    },
    2: (reader) => {
      id = reader.long()
    },
    3: (reader) => {
      ttlSeconds = reader.int()
    },
  })
  return { header, id, ttlSeconds }
}

export function readToken(bytes: Buffer): string {
  let token = ''
  readFields(new ProtoReader(bytes), {
    2: (reader) => {
      token = reader.text()
    },
  })
  return token
}

export function readStatus(bytes: Buffer): ServerStatus {
  const errors: string[] = []
  let [version, dbBytes] = ['', 0]
  readFields(new ProtoReader(bytes), {
    2: (reader) => {
      version = reader.text()
    },
    3: (reader) => {
      dbBytes = reader.int()
    },
    8: (reader) => errors.push(reader.text()),
  })
  return { version, dbBytes, errors }
}

export function readMembers(bytes: Buffer): ClusterMember[] {
  const members: ClusterMember[] = []
  readFields(new ProtoReader(bytes), { 2: (reader) => members.push(readMember(reader.message())) })
  return members
}

function readMember(reader: ProtoReader): ClusterMember {
  const clientUrls: string[] = []
  let [name, isLearner] = ['', false]
  readFields(reader, {
    2: (fields) => {
      name = fields.text()
    },
    4: (fields) => clientUrls.push(fields.text()),
    5: (fields) => {
      isLearner = fields.int() === 1
    },
  })
  return { name, clientUrls, isLearner }
}
