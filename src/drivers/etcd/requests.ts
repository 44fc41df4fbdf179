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

const RESULTS = { '=': 0, '>': 1, '<': 2 }
const TARGETS = { create: 1, mod: 2, value: 3, lease: 4 }
/** Where the value of a comparison stands, by its target. */
const VALUE_FIELDS = { create: 5, mod: 6, value: 7, lease: 8 }
const END_FIELD = 64
const OPERATION_FIELDS = { range: 1, put: 2, delete: 3, txn: 4 }
const [ASCENDING, DESCENDING] = [1, 2]
const [BY_CREATE, BY_MOD] = [2, 3]

export function encode(write: (out: ProtoWriter) => void): Buffer {
  const out = new ProtoWriter()
  write(out)
  return out.finish()
}

export function writeTransaction(out: ProtoWriter, transaction: EtcdTransaction): void {
  for (const compare of transaction.compare ?? []) out.message(1, (inner) => writeCompare(inner, compare))
  for (const operation of transaction.success) out.message(2, (inner) => writeOperation(inner, operation))
  for (const operation of transaction.failure ?? [])
    out.message(3, (inner) => writeOperation(inner, operation))
}

function writeCompare(out: ProtoWriter, { key, end, target, is, value }: KeyCompare): void {
  writeKey(out.int(1, RESULTS[is]).int(2, TARGETS[target]), 3, key)
  const isNumber = typeof value === 'number' || typeof value === 'bigint'
  if (isNumber) out.int(VALUE_FIELDS[target], value)
  else writeKey(out, VALUE_FIELDS[target], value)
  if (end !== undefined) writeKey(out, END_FIELD, end)
}

function writeOperation(out: ProtoWriter, operation: Operation): void {
  out.message(OPERATION_FIELDS[operation.type], (inner) => {
    if (operation.type === 'txn') return writeTransaction(inner, operation)
    writeKey(inner, 1, operation.key)
    if (operation.type === 'put') writeKey(inner, 2, operation.value).int(3, operation.lease ?? 0n)
    else if (operation.end !== undefined) writeKey(inner, 2, operation.end)
    if (operation.type === 'range') writeRange(inner, operation)
  })
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
