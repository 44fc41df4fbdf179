import { invalid } from '../base/errors.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { ClaimView } from '../contract/store.js'
import { type ApiContext, nameOf } from './api.js'
import type { AuditSubject } from './audit.js'
import { Buckets } from './buckets.js'
import { checkFields, type HttpCall, json, readJson } from './call.js'
import type { Guard } from './guard.js'
import { partyOf, seenLine } from './lines.js'
import { Problem } from './problems.js'
import type { Route } from './router.js'
import type { Party } from './shapes.js'
import type { Space } from './spaces.js'

/** Changes of one user: so many at once, then one each second. */
const CHANGES = { burst: 30, perSecond: 1 }

type Body = Record<string, unknown>
type Change = (space: Space, name: string, body: Body) => Promise<Response>

/** The field of the body that each change has, and the change. */
const CHANGES_BY_NAME: Readonly<Record<string, { readonly field: string; readonly make: Change }>> = {
  break: { field: 'fence', make: breakHold },
  cancel: { field: 'id', make: cancel },
  resize: { field: 'capacity', make: resize },
}

/** What operators may do to a line. Every attempt is written down, also one that is refused. */
export function changeRoutes({ options, spaces, audit }: ApiContext, guard: Guard): Route[] {
  const changes = new Buckets(spaces.home.context.engine.env, CHANGES)

  const answer = (call: HttpCall, action: string): Promise<Response> => {
    const { field, make } = CHANGES_BY_NAME[action] as { field: string; make: Change }
    const { params, url, peer, request } = call
    const asked = url.searchParams.get('space')
    const subject: AuditSubject = {
      who: peer.address,
      action,
      space: asked ?? spaces.home.name,
      resource: params['name'] ?? url.searchParams.get('name') ?? '',
      detail: '',
      isUser: false,
    }
    return audit.around(subject, async () => {
      guard.checkHost(call)
      guard.checkSite(call)
      subject.who = await guard.user(call)
      if (!changes.take(subject.who ?? ''))
        throw new Problem('TOO_MANY_REQUESTS', 'Too many changes; wait a moment', { 'retry-after': '1' })
      subject.isUser = true
      if (!options.allowChanges)
        throw new Problem(
          'READ_ONLY',
          'This server shows, and changes nothing; start it with --allow-changes',
        )
      // A form, or a simple request of another site, cannot send this header.
      if (request.headers.get('x-holdfast-change') !== '1')
        throw new Problem('FORBIDDEN', 'Send the header x-holdfast-change: 1 with a change')
      const name = nameOf(call)
      const body = await readJson(request)
      checkFields(body, [field])
      subject.detail = textOf(field, body[field])
      const space = await spaces.of(asked)
      await audit.begin(subject)
      const response = await make(space, name, body)
      space.poller.hurry()
      return response
    })
  }
  return Object.keys(CHANGES_BY_NAME).flatMap((action) =>
    [`api/resources/{name}/${action}`, `api/resource/${action}`].map((path) => ({
      method: 'POST' as const,
      path,
      access: 'audited' as const,
      answer: (call: HttpCall) => answer(call, action),
    })),
  )
}

/** For the audit log. String() would throw for an object such as `{toString: 1}`. */
function textOf(field: string, value: unknown): string {
  if (value === undefined) return ''
  return `${field} ${typeof value === 'string' ? value : JSON.stringify(value)}`
}

async function breakHold({ context }: Space, name: string, { fence }: Body): Promise<Response> {
  // Only an omitted fence means every hold: null is a fence that the caller failed to find.
  if (fence !== undefined && !Number.isSafeInteger(fence))
    throw invalid('fence must be the number of the hold to break', name)
  const revoked = await context.operator.evict(name, (fence as number | undefined) ?? null)
  return json({ revoked: partiesOf(name, revoked, context.engine.env.wallMs()) })
}

async function cancel({ context }: Space, name: string, { id }: Body): Promise<Response> {
  if (typeof id !== 'string' || id === '')
    throw invalid('id must be the id of a waiter, as the list shows it', name)
  const cancelled = await context.operator.cancel(name, id)
  return json({ cancelled: partiesOf(name, cancelled, context.engine.env.wallMs()) })
}

async function resize({ locks }: Space, name: string, { capacity }: Body): Promise<Response> {
  await locks.resizeSemaphore(name, capacity as number)
  return json({ capacity })
}

function partiesOf(resource: string, claims: readonly ClaimView[], wallMs: number): Party[] {
  return seenLine({ resource, capacity: EXCLUSIVE, claims }, wallMs).claims.map(partyOf)
}
