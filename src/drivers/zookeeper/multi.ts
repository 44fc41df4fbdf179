import { serverError } from './errors.js'
import type { JuteReader, JuteWriter } from './jute.js'
import { type CreateFields, createOp, type Operation, readCreated, writeCreate } from './operations.js'
import { Op } from './protocol.js'
import { readStat, type Stat } from './records.js'

/** One operation of a multi, with the server's paths. */
export type MultiFields =
  | ({ readonly type: 'create' } & CreateFields)
  | { readonly type: 'delete'; readonly path: string; readonly version: number }
  | { readonly type: 'set'; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | { readonly type: 'check'; readonly path: string; readonly version: number }

/** The result of one operation of a multi. */
export type MultiResult =
  /** Without a stat, as servers up to 3.8 give none here; its `czxid` is the answer's `zxid`. */
  | { readonly type: 'create'; readonly path: string }
  | { readonly type: 'set'; readonly stat: Stat }
  | { readonly type: 'delete' }
  | { readonly type: 'check' }

/** Operations before the one that failed have `OK`, those after it `RUNTIMEINCONSISTENCY`. */
const NOT_THE_CAUSE = new Set([0, -2])

/**
 * All or nothing. On failure it throws the error of the operation that failed, with its path in
 * `asked`.
 */
export function multi(
  operations: readonly MultiFields[],
  asked: readonly { type: string; path: string }[],
): Operation<{ results: MultiResult[] }> {
  return {
    op: Op.multi,
    isWrite: true,
    write(out) {
      for (const operation of operations) writeOne(out, operation)
      writeHeader(out, Op.error, true)
    },
    read: (input) => ({ results: readResults(input, asked) }),
  }
}

function writeOne(out: JuteWriter, operation: MultiFields): void {
  switch (operation.type) {
    case 'create':
      writeHeader(out, createOp(operation.mode))
      return writeCreate(out, operation)
    case 'delete':
      writeHeader(out, Op.delete)
      out.string(operation.path).int(operation.version)
      return
    case 'set':
      writeHeader(out, Op.setData)
      out.string(operation.path).buffer(operation.data).int(operation.version)
      return
    case 'check':
      writeHeader(out, Op.check)
      out.string(operation.path).int(operation.version)
  }
}

function writeHeader(out: JuteWriter, op: number, isLast = false): void {
  out.int(op).bool(isLast).int(-1)
}

function readResults(input: JuteReader, asked: readonly { type: string; path: string }[]): MultiResult[] {
  const results: MultiResult[] = []
  const errors: number[] = []
  for (;;) {
    const op = input.int()
    const isLast = input.bool()
    input.int()
    if (isLast) break
    if (op === Op.error) errors.push(input.int())
    else results.push(readResult(op, input))
  }
  if (errors.length === 0) return results
  const index = errors.findIndex((error) => !NOT_THE_CAUSE.has(error))
  const { type, path } = asked[index] ?? { type: 'multi', path: '' }
  throw serverError(errors[index] ?? 0, `'${type} ${path}' of a multi`, { path, index })
}

function readResult(op: number, input: JuteReader): MultiResult {
  if (op === Op.create) return { type: 'create', path: input.string() }
  if (op === Op.create2) return { type: 'create', path: readCreated(input).path }
  if (op === Op.setData) return { type: 'set', stat: readStat(input) }
  return { type: op === Op.delete ? 'delete' : 'check' }
}
