// The JSON of the server, as types. Without imports of Node, so that the page uses them, too.

/** What a resource is, as far as its capacity and its name tell. */
export type ResourceKind = 'lock' | 'semaphore' | 'election' | 'once' | 'barrier'

/** A claim in a line: a holder, or a waiter. Times are ISO strings by the server's clock. */
export interface Party {
  id: string
  owner: string
  host: string
  pid: number
  label: string | null
  permits: number
  /** Whether it asks for the whole lock. */
  isWriter: boolean
  since: string
  expires: string
  /** null: it waits. */
  fence: number | null
}

/** One resource in a list. */
export interface ResourceSummary {
  name: string
  kind: ResourceKind
  /** null: a lock. */
  capacity: number | null
  /** The permits that are taken; of a lock, the number of its holders. */
  used: number
  holders: number
  waiters: number
  /** Whether it is a lock that is held by readers. */
  readers: boolean
  oldestWaitMs: number | null
  heldMs: number | null
  /** The first holder. */
  holder: Party | null
  changedAt: string
}

/** What is told of a whole space. */
export interface SpaceTotals {
  /** The number of resources. */
  total: number
  /** The number of holds. */
  held: number
  /** The number of waiters. */
  waiting: number
  longestWaitMs: number | null
  asOf: string
}

/** The answer of `GET api/resources`. */
export interface ResourceList extends SpaceTotals {
  /** How many the filter lets through; `total` counts all. */
  found: number
  resources: ResourceSummary[]
}

/** The event `resources`. */
export interface ResourceChanges extends SpaceTotals {
  /** true: `changed` replaces the whole list. */
  isAll: boolean
  changed: ResourceSummary[]
  gone: string[]
}

/** One stretch of holding or waiting, as the server saw it. */
export interface TimelineEntry {
  id: string
  owner: string
  host: string
  pid: number
  label: string | null
  state: 'held' | 'waited'
  from: string
  /** null: it goes on. */
  to: string | null
  fence: number | null
  end: null | 'left' | 'granted'
}

/** The answer of `GET api/resources/{name}`, and the event `resource`. */
export interface ResourceDetail {
  name: string
  kind: ResourceKind
  capacity: number | null
  asOf: string
  used: number
  holders: Party[]
  /** One page of the waiters. */
  waiters: Party[]
  waitersTotal: number
  offset: number
  timeline: TimelineEntry[]
}

/** The answer of `GET api/overview`: what is made of lines and states. */
export interface SpaceOverview {
  elections: {
    name: string
    leader: Party | null
    /** null: nobody leads. */
    term: number | null
    /** The latest first. */
    leaders: { id: string; term: number; since: string | null }[]
    candidates: Party[]
  }[]
  latches: { name: string; total: number; count: number }[]
  barriers: { name: string; parties: number | null; here: number }[]
  once: {
    name: string
    running: Party | null
    /** The last start, and until when nobody starts it again. */
    last: { began: string; keptUntil: string } | null
  }[]
}

/** The answer of `GET api/info`. */
export interface ServerInfo {
  version: string
  store: string
  /** null: the store cannot list them. */
  spaces: string[] | null
  space: string
  allowChanges: boolean
  allowLocks: boolean
  user: string | null
  /** Whether the store tells waiters at once. */
  pushes: boolean
}

/** One entry of the audit log. */
export interface AuditEntry {
  /** When, as an ISO string. */
  at: string
  /** The user, as far as known. */
  who: string | null
  /** What was asked: `break`, `cancel`, `resize`, `login`. */
  action: string
  /** The space of the resource. */
  space: string
  /** The resource, or '' for a sign-in. */
  resource: string
  /** What the request said: a fence, an id, a capacity. */
  detail: string
  /**
   * `begun`, written just before a change is made; then `done`, or the code of the problem:
   * `FORBIDDEN`, `STORE_UNAVAILABLE`.
   */
  result: string
}

/** A problem document (RFC 9457). Branch on `code`. */
export interface ProblemDocument {
  type: string
  title: string
  status: number
  detail: string
  code: string
  resource?: string
}
