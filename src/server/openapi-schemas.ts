// The shapes of shapes.ts, as JSON Schema.

type Schema = Readonly<Record<string, unknown>>

const text: Schema = { type: 'string' }
const whole: Schema = { type: 'integer' }
const yesOrNo: Schema = { type: 'boolean' }
const time: Schema = { type: 'string', format: 'date-time' }
const textOrNull: Schema = { type: ['string', 'null'] }
const wholeOrNull: Schema = { type: ['integer', 'null'] }
const timeOrNull: Schema = { type: ['string', 'null'], format: 'date-time' }
const kind: Schema = { enum: ['lock', 'semaphore', 'election', 'once', 'barrier'] }
const duration: Schema = {
  type: ['string', 'integer'],
  description: "Milliseconds, or a number with a unit: '500ms', '30s', '5m'",
}

/** An object that has all of these properties, and no others. */
export function objectOf(
  properties: Readonly<Record<string, Schema>>,
  required = Object.keys(properties),
): Schema {
  return { type: 'object', properties, required, additionalProperties: false }
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items }
}

export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}

const partyOrNull: Schema = { oneOf: [ref('Party'), { type: 'null' }] }
const who = { owner: text, host: text, pid: whole, label: textOrNull }
const totals = { total: whole, held: whole, waiting: whole, longestWaitMs: wholeOrNull, asOf: time }
const leased = { expires: time, leaseMs: whole }

export const schemas: Readonly<Record<string, Schema>> = {
  Problem: objectOf({ type: text, title: text, status: whole, detail: text, code: text, resource: text }, [
    'type',
    'title',
    'status',
    'detail',
    'code',
  ]),
  Party: objectOf({
    id: text,
    ...who,
    permits: whole,
    isWriter: yesOrNo,
    since: time,
    expires: time,
    fence: wholeOrNull,
  }),
  ResourceSummary: objectOf({
    name: text,
    kind,
    capacity: wholeOrNull,
    used: whole,
    holders: whole,
    waiters: whole,
    readers: yesOrNo,
    oldestWaitMs: wholeOrNull,
    heldMs: wholeOrNull,
    holder: partyOrNull,
    changedAt: time,
  }),
  ResourceList: objectOf({ ...totals, found: whole, resources: listOf(ref('ResourceSummary')) }),
  TimelineEntry: objectOf({
    id: text,
    ...who,
    state: { enum: ['held', 'waited'] },
    from: time,
    to: timeOrNull,
    fence: wholeOrNull,
    end: { enum: [null, 'left', 'granted'] },
  }),
  ResourceDetail: objectOf({
    name: text,
    kind,
    capacity: wholeOrNull,
    asOf: time,
    used: whole,
    holders: listOf(ref('Party')),
    waiters: listOf(ref('Party')),
    waitersTotal: whole,
    offset: whole,
    timeline: listOf(ref('TimelineEntry')),
  }),
  Overview: objectOf({
    elections: listOf(
      objectOf({
        name: text,
        leader: partyOrNull,
        term: wholeOrNull,
        leaders: listOf(objectOf({ id: text, term: whole, since: timeOrNull })),
        candidates: listOf(ref('Party')),
      }),
    ),
    latches: listOf(objectOf({ name: text, total: whole, count: whole })),
    barriers: listOf(objectOf({ name: text, parties: wholeOrNull, here: whole })),
    once: listOf(
      objectOf({
        name: text,
        running: partyOrNull,
        last: { oneOf: [objectOf({ began: time, keptUntil: time }), { type: 'null' }] },
      }),
    ),
  }),
  Info: objectOf({
    version: text,
    store: text,
    spaces: { oneOf: [listOf(text), { type: 'null' }] },
    space: text,
    allowChanges: yesOrNo,
    allowLocks: yesOrNo,
    user: textOrNull,
    pushes: yesOrNo,
  }),
  AuditEntry: objectOf({
    at: time,
    who: textOrNull,
    action: text,
    space: text,
    resource: text,
    detail: text,
    result: text,
  }),
  Finding: objectOf({ level: { enum: ['fine', 'risk', 'fault'] }, about: text, text }),
  Health: objectOf({ status: { enum: ['up', 'ready', 'unavailable'] }, reason: text }, ['status']),
  LockRequest: objectOf(
    {
      wait: { ...duration, default: '10s' },
      maxWaiters: { ...whole, minimum: 1 },
      lease: { ...duration, default: '30s' },
      label: text,
      owner: text,
      mode: { enum: ['write', 'read'], default: 'write' },
      capacity: { ...whole, minimum: 1 },
      permits: { ...whole, minimum: 1 },
    },
    [],
  ),
  TryRequest: objectOf(
    {
      lease: { ...duration, default: '30s' },
      label: text,
      owner: text,
      mode: { enum: ['write', 'read'], default: 'write' },
      capacity: { ...whole, minimum: 1 },
      permits: { ...whole, minimum: 1 },
    },
    [],
  ),
  RenewRequest: objectOf({ lease: { ...duration, default: '30s' }, token: text }, []),
  GrantedHold: objectOf({ token: text, name: text, fence: whole, ...leased }),
  RenewedHold: objectOf({ name: text, fence: whole, ...leased }),
}
