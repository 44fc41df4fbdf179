import { createHash } from 'node:crypto'
import type { Env } from '../base/env.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { acquireTimeout, type Limits } from '../calls/limits.js'
import { trustedUntil } from '../contract/validity.js'
import type { Engine } from '../engine/engine.js'
import { handOver } from '../engine/hand-over.js'
import { type ApiContext, nameOf, nobodyIn, readDetail } from './api.js'
import { checkFields, type HttpCall, json, readJson } from './call.js'
import { iso } from './lines.js'
import { readLeaseMs, readLimits, readLockRequest } from './lock-request.js'
import { Problem } from './problems.js'
import type { Route } from './router.js'
import type { Space } from './spaces.js'

const TOKEN_HEADER = 'holdfast-token'

type Answer = (call: HttpCall, space: Space) => Promise<Response>

/**
 * Locks for other languages. A hold belongs to its token: the id of its claim is a hash of it, so
 * any server of the same store can renew and release it, and a reader of the list cannot.
 */
export function lockRoutes(context: ApiContext): Route[] {
  const { options, spaces } = context
  let waits = 0

  const route = (method: Route['method'], path: string, answer: Answer): Route => ({
    method,
    path,
    access: 'users',
    answer: async (call) => {
      if (!options.allowLocks)
        throw new Problem('READ_ONLY', 'This server grants no locks; start it with --allow-locks')
      const space = await spaces.of(call.url.searchParams.get('space'))
      checkCanShare(space.context.engine)
      return answer(call, space)
    },
  })

  const waiting: Answer = async (call, space) => {
    const body = await readJson(call.request)
    const limits = readLimits(body, call.request.signal)
    if (waits >= options.maxWaits)
      throw new Problem('TOO_MANY_WAITS', `${options.maxWaits} requests wait for locks already; try later`)
    waits++
    return acquire(call, space, body, limits).finally(() => {
      waits--
    })
  }
  return [
    route('POST', 'v1/locks/{name}', waiting),
    route('POST', 'v1/locks/{name}/try', async (call, space) => {
      const body = await readJson(call.request)
      for (const field of ['wait', 'maxWaiters'])
        if (body[field] !== undefined) throw invalid(`try does not wait; leave ${field} out`)
      return acquire(call, space, body, { waitMs: 0, signal: call.request.signal })
    }),
    route('PUT', 'v1/holds/{name}', renew),
    route('DELETE', 'v1/holds/{name}', release),
    {
      method: 'GET',
      path: 'v1/locks/{name}',
      access: 'users',
      answer: async (call) => {
        const detail = await readDetail(call, await spaces.of(call.url.searchParams.get('space')))
        // The page shows the past of an empty line; a client asks whether there is one.
        if (detail.holders.length + detail.waitersTotal === 0) throw nobodyIn()
        return json(detail)
      },
    },
  ]
}

async function acquire(
  call: HttpCall,
  { context }: Space,
  body: Record<string, unknown>,
  limits: Limits,
): Promise<Response> {
  const { engine } = context
  const { env } = engine
  const name = nameOf(call)
  const { signal } = call.request
  // A place in line that was lost is asked for again under a new id, so there may be several.
  const tokens = new Map<string, string>()
  const spec = readLockRequest(name, body, () => {
    const token = newToken(env)
    tokens.set(idOf(token), token)
    return idOf(token)
  })
  const entry = await engine.acquire(spec, limits)
  if (!entry) throw acquireTimeout(name, 0)
  const { id, fence, leaseMs } = await handOver(engine, entry)
  // The client has left, and does not know its token.
  if (signal.aborted) void engine.withdraw({ resource: name, id })
  const hold = { token: tokens.get(id), name, fence, ...leaseOf(env, leaseMs) }
  return json(hold, { status: 201 })
}

async function renew(call: HttpCall, { context }: Space): Promise<Response> {
  const { env, calls, connection } = context.engine
  const name = nameOf(call)
  const body = await readJson(call.request)
  checkFields(body, ['lease', 'token'])
  const beat = { resource: name, id: idOf(tokenOf(call, body)), leaseMs: readLeaseMs(body), presenceMs: 0 }
  let sentAt = 0
  const [reply] = await calls.repeated(env.now() + calls.storeTimeoutMs, () => {
    sentAt = env.now()
    return connection.pulse([beat])
  })
  if (reply?.status !== 'held') throw lost(name)
  // The hold must end for the client first, also if the clock of the store runs faster.
  const leaseMs = trustedUntil(sentAt, reply.leaseMs) - env.now()
  return json({ name, fence: reply.fence, ...leaseOf(env, leaseMs) })
}

async function release(call: HttpCall, { context }: Space): Promise<Response> {
  const name = nameOf(call)
  const hasBody = call.request.headers.has('content-type')
  const body = hasBody ? await readJson(call.request) : {}
  checkFields(body, ['token'])
  const wasHeld = await context.engine.releases.release(
    { resource: name, id: idOf(tokenOf(call, body)) },
    Infinity,
  )
  if (!wasHeld) throw lost(name)
  return new Response(null, { status: 204 })
}

function leaseOf(env: Env, leaseMs: number): { expires: string; leaseMs: number } {
  const leftMs = Math.max(0, Math.floor(leaseMs))
  return { expires: iso(env.wallMs() + leftMs), leaseMs: leftMs }
}

/** Two random identifiers: more than 240 bits that nobody can guess. */
function newToken(env: Env): string {
  return `${env.id()}${env.id()}`.replaceAll('-', '')
}

/** What the store and its listings show in place of the token. */
function idOf(token: string): string {
  return `http:${createHash('sha256').update(token).digest('hex')}`
}

function tokenOf({ request }: HttpCall, body: Record<string, unknown>): string {
  const token = request.headers.get(TOKEN_HEADER) ?? body['token']
  if (typeof token === 'string' && token !== '') return token
  throw invalid('Send the token of the hold in the header Holdfast-Token')
}

function lost(resource: string): HoldfastError {
  const message = `This hold of '${resource}' is over: it was released, broken, or not renewed in time`
  return new HoldfastError('NOT_HELD', message, { resource })
}

function checkCanShare({ capabilities, storeName }: Engine): void {
  if (capabilities.sharesClaims !== false) return
  const message = `On the ${storeName} store a hold belongs to the server that granted it, so the lock API is not offered`
  throw new HoldfastError('UNSUPPORTED', message, { store: storeName })
}
