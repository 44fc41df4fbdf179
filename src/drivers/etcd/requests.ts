import { GRPC_HEADER_BYTES, withGrpcHeader } from './frames.js'
import { ProtoWriter } from './protobuf.js'

/** A key: text, as UTF-8, or bytes. */
export type Key = string | Uint8Array

/**
 * What of a key is compared, in a transaction. A missing key has revisions and a lease of 0; its
 * value compares with nothing.
 */
export interface KeyCompare {
  /** The key; with `end`, every key from here to before that one. */
  readonly key: Key
  /** Where the range of keys ends. Left out: just this key. */
  readonly end?: Key | undefined
  /**
   * `create`, `mod`: its revisions. `lease`: the lease that it is attached to. `value`: by its
   * bytes.
   */
  readonly target: 'create' | 'mod' | 'lease' | 'value'
  /** `=`: the same as the value. `<`, `>`: below or above it. */
  readonly is: '=' | '<' | '>'
  /** What it is compared with. */
  readonly value: number | bigint | Key
}

/** Reads keys. */
export interface RangeOperation {
  /** Reads. */
  readonly type: 'range'
  /** The key, or the first one of a range. */
  readonly key: Key
  /** Where the range ends; it is not part of it. Left out: just this key. */
  readonly end?: Key | undefined
  /** The most keys to return; `count` still counts all. Left out: all. */
  readonly limit?: number | undefined
  /** Default: by key. */
  readonly sort?: 'newest' | 'oldest' | undefined
  /** Without the values. */
  readonly keysOnly?: boolean | undefined
  /** The state at this revision. Left out: the newest. */
  readonly revision?: number | undefined
}

/** One operation of a transaction. */
export type Operation =
  | RangeOperation
  | {
      readonly type: 'put'
      readonly key: Key
      readonly value: Key
      /** The key ends with this lease. */
      readonly lease?: bigint | undefined
    }
  | { readonly type: 'delete'; readonly key: Key; readonly end?: Key | undefined }
  | ({ readonly type: 'txn' } & EtcdTransaction)

/** All of `success` if every comparison is true, otherwise all of `failure`, in one step. */
export interface EtcdTransaction {
  /** Left out: always true. */
  readonly compare?: readonly KeyCompare[] | undefined
  /** Done if every comparison is true. */
  readonly success: readonly Operation[]
  /** Done otherwise. */
  readonly failure?: readonly Operation[] | undefined
}

const FIRST_VALUE_FIELD = 4
const END_FIELD = 64
const [ASCENDING, DESCENDING] = [1, 2]
const [BY_CREATE, BY_MOD] = [2, 3]

/** A message as gRPC sends it. */
export function encode(write: (out: ProtoWriter) => void): Buffer {
  const out = new ProtoWriter(GRPC_HEADER_BYTES)
  write(out)
  return withGrpcHeader(out.finish())
}

export function encodeTransaction(transaction: EtcdTransaction): Buffer {
  const out = new ProtoWriter(GRPC_HEADER_BYTES)
  writeTransaction(out, transaction)
  return withGrpcHeader(out.finish())
}

function writeTransaction(out: ProtoWriter, { compare, success, failure }: EtcdTransaction): void {
  if (compare) for (const one of compare) writeCompare(out, one)
  for (const operation of success) writeOperation(out, 2, operation)
  if (failure) for (const operation of failure) writeOperation(out, 3, operation)
}

function writeCompare(out: ProtoWriter, { key, end, target, is, value }: KeyCompare): void {
  const start = out.begin(1)
  const targetNumber = numberOfTarget(target)
  writeKey(out.int(1, numberOfResult(is)).int(2, targetNumber), 3, key)
  const valueField = FIRST_VALUE_FIELD + targetNumber
  const isNumber = typeof value === 'number' || typeof value === 'bigint'
  if (isNumber) out.int(valueField, value)
  else writeKey(out, valueField, value)
  if (end !== undefined) writeKey(out, END_FIELD, end)
  out.end(start)
}

// Not tables: a look-up by a name that varies takes longer.

function numberOfResult(is: KeyCompare['is']): number {
  if (is === '=') return 0
  return is === '>' ? 1 : 2
}

function numberOfTarget(target: KeyCompare['target']): number {
  if (target === 'mod') return 2
  if (target === 'create') return 1
  return target === 'value' ? 3 : 4
}

function fieldOf(type: Operation['type']): number {
  if (type === 'put') return 2
  if (type === 'range') return 1
  return type === 'delete' ? 3 : 4
}

function writeOperation(out: ProtoWriter, field: number, operation: Operation): void {
  const outer = out.begin(field)
  const inner = out.begin(fieldOf(operation.type))
  if (operation.type === 'txn') writeTransaction(out, operation)
  else writeKeys(out, operation)
  out.end(inner)
  out.end(outer)
}

function writeKeys(out: ProtoWriter, operation: Exclude<Operation, { type: 'txn' }>): void {
  writeKey(out, 1, operation.key)
  if (operation.type === 'put') writeKey(out, 2, operation.value).int(3, operation.lease ?? 0n)
  else if (operation.end !== undefined) writeKey(out, 2, operation.end)
  if (operation.type === 'range') writeRange(out, operation)
}

function writeRange(
  out: ProtoWriter,
  { limit = 0, revision = 0, sort, keysOnly = false }: RangeOperation,
): void {
  out.int(3, limit).int(4, revision)
  if (sort === 'newest') out.int(5, DESCENDING).int(6, BY_MOD)
  if (sort === 'oldest') out.int(5, ASCENDING).int(6, BY_CREATE)
  out.int(8, keysOnly)
}

export function writeKey(out: ProtoWriter, field: number, key: Key): ProtoWriter {
  return typeof key === 'string' ? out.text(field, key) : out.bytes(field, key)
}
