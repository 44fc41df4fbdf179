import type { ClaimRequest } from '../../contract/store.js'
import { toUs } from '../shared/time.js'
import type { MysqlNews } from './clients.js'
import type { Changed } from './driver.js'
import type { MysqlRunner } from './runner.js'
import { type AloneClaim, grantAlone, releaseAlone } from './sql/alone.js'
import { BOUNDED_VALUES, MODE } from './sql/claim.js'
import type { MysqlNames } from './sql/names.js'
import { bytes, json, toBytes, toHex } from './values.js'

/** A number, or bytes in hexadecimal; null is nothing. */
type CallValue = number | string | null

/** A claim or release. */
export interface MysqlCall {
  /** The key of the line. */
  readonly line: string
  readonly space: string
  readonly resource: string
  /** The id of the client that makes it. */
  readonly client: string
  /** In the order of `CLAIM_VALUES` or `BOUNDED_VALUES`; of a release the mode and the id. */
  readonly values: readonly CallValue[]
  /** Tried first, where the call travels alone. */
  readonly fastPath: FastPath | undefined
}

/** An UPDATE that serves the call where no other claim is in the line, or changes nothing. */
interface FastPath {
  sql(names: MysqlNames, at: string): string
  /** The answer to the call where it has changed the line. */
  reply(changed: Changed): unknown
}

/** What a routine answers: the reply, and news for other claims of the line. */
export interface MysqlAnswer<T> {
  readonly reply: T
  readonly news: readonly MysqlNews[]
}

/** The values of a claim, in the order of `CLAIM_VALUES`; of a bounded one, of `BOUNDED_VALUES`. */
export function claimValues(request: ClaimRequest, client: string): CallValue[] {
  const { id, permits, capacity, maxHoldMs, floor, block, info, adopts } = request
  const durations = [
    toUs(request.leaseMs),
    toUs(request.presenceMs),
    maxHoldMs === null ? null : toUs(maxHoldMs),
  ]
  const old = adopts ? [toHex(adopts.id), adopts.fence] : [null, null]
  const who = [MODE[request.mode], toHex(id), toHex(client)]
  const bound = request.maxWaiters === undefined ? [] : [request.maxWaiters]
  return [...who, permits, capacity, ...durations, floor, block, toHex(info), ...old, ...bound]
}

export function releaseValues(id: string): CallValue[] {
  return [MODE.release, toHex(id)]
}

/** Only for claims without `maxHold` that take no other claim's place. */
export function fastClaim(line: string, request: ClaimRequest, client: string): FastPath | undefined {
  const { permits, capacity, leaseMs, maxHoldMs, floor, block, mode } = request
  if (maxHoldMs !== null || mode === 'adopt' || mode === 'steal' || permits > capacity) return undefined
  const [id, owner, info] = [toHex(request.id), toHex(client), toHex(request.info)]
  const claim: AloneClaim = {
    id,
    client: owner,
    info,
    permits,
    capacity,
    lease: toUs(leaseMs),
    floor,
    block,
  }
  return {
    sql: (names, at) => grantAlone(names, line, claim, at),
    reply: (changed) => ({ status: 'granted', fence: changed.id, leaseMs: claim.lease / 1000 }),
  }
}

export function fastRelease(line: string, id: string): FastPath {
  return { sql: (names, at) => releaseAlone(names, line, toHex(id), at), reply: () => true }
}

/** Sends calls of one line; answers one reply for each. `at`: the last argument of a routine. */
export async function sendCalls(
  runner: MysqlRunner,
  calls: readonly MysqlCall[],
  at: string,
): Promise<MysqlAnswer<unknown[]>> {
  const [{ line, fastPath }] = calls as [MysqlCall]
  if (fastPath && calls.length === 1) {
    const changed = await runner.change(fastPath.sql(runner.names, at))
    if (changed.rows === 1) return { reply: [fastPath.reply(changed)], news: [] }
  }
  const [routine, values] = statementOf(calls)
  const [row = ''] = await runner.call(routine, [bytes(line), ...values, at])
  const { reply, news } = JSON.parse(row) as MysqlAnswer<unknown>
  return { reply: Array.isArray(reply) ? reply : [reply], news }
}

/** The routine for these calls, and its arguments without the line and the time. */
function statementOf(calls: readonly MysqlCall[]): [routine: string, values: string[]] {
  const [{ space, resource, client, values }] = calls as [MysqlCall]
  const name = [toBytes(space), toBytes(resource)]
  // Other clients of a batch are told twice, in the answer and by the table; the second is ignored.
  const caller = toBytes(client)
  const isBounded = calls.some((call) => call.values.length === BOUNDED_VALUES.length)
  if (calls.length > 1 || isBounded) {
    const all = json(JSON.stringify(calls.map((call) => call.values)))
    return [isBounded ? 'bounded_calls' : 'calls', [caller, ...name, all]]
  }
  const [mode, ...rest] = values
  if (mode === MODE.release) return ['leave', [caller, ...rest.map(toSql)]]
  return ['join', [caller, ...name, ...values.map(toSql)]]
}

function toSql(value: CallValue): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? String(value) : bytes(value)
}
