/**
 * Where lines live. A store value is a description; `connect` makes one client's connection to it.
 * Several clients may connect to one store value, also in one process. See
 * docs/decisions/0001-store-contract.md.
 */
export interface Store {
  /** Names the store in errors and listings: `memory`, `sqlite`. */
  readonly name: string
  readonly capabilities: Capabilities
  /** Does no input or output: the first call opens the connection, and reports its failure. */
  connect(client: ClientContext): Connection
}

/** What a store can do. Each flag says what the engine does with it. */
export interface Capabilities {
  /** false: a hold lives as long as the client's session; replies carry the real `leaseMs`. */
  readonly perHoldLease: boolean
  /** How many beats the engine puts into one `pulse` call. */
  readonly maxBeats: number
  /**
   * How often the engine asks about a claim that is next in line, besides the pulse, because pushes
   * may get lost. `null`: pushes arrive, or the store pushes `gap`. May change while the client
   * runs.
   */
  readonly askNextEveryMs: number | null
  /** true: safety needs the answer to a pulse before a pushed grant is handed out. */
  readonly confirmHandOffs?: boolean
  /**
   * true: a `wanted` push tells the holder of a block of fences when another claim begins to wait
   * for it, or a try is refused. false: not at this moment, so a lease that lingers goes back after
   * 50 ms. Left out: never, so a longer `linger` is refused.
   */
  readonly tellsWanted?: boolean | undefined
  /**
   * true: `claim` and `release` answer within the call, so the engine sets no deadline for them.
   */
  readonly answersAtOnce?: boolean
  /** The most fences of one claim or beat. Left out: no limit. 1: holds are not passed on. */
  readonly maxBlock?: number
  /** true: beats may carry `fences`. Left out: the store cannot be a member of a quorum. */
  readonly takesFences?: boolean
  /**
   * false: a claim is renewed and released only through the connection that made it, so the lock
   * API of the server is refused. Left out: through any connection.
   */
  readonly sharesClaims?: boolean
  /** false: only locks, so semaphores and barriers are refused. Left out: every capacity. */
  readonly countsPermits?: boolean
}

/** The client that connects, and how the store reaches it. */
export interface ClientContext {
  /** Unique to this client. */
  readonly id: string
  readonly space: string
  /** Takes a push at any time, also before the reply to the call that caused it. Never throws. */
  push(news: Push): void
}

/** A store that answers within the call need not make a promise: see `answersAtOnce`. */
export type Answer<T> = T | Promise<T>

/** One client's connection. A call answers or fails; it never sleeps, retries or reads a signal. */
export interface Connection {
  /** Joins the line. The same id again returns the present state of that claim. */
  claim(request: ClaimRequest): Answer<ClaimReply>
  /** Renews holds and places in line; one reply per beat, in order. No beats: a health check. */
  pulse(beats: readonly Beat[]): Promise<BeatReply[]>
  /** Leaves the line, as holder or as waiter. false: the claim was not there any more. */
  release(resource: string, id: string): Answer<boolean>
  /**
   * The claim is renewed and released through other connections from now on. Left out: this one
   * keeps nothing in mind that would become wrong.
   */
  letGo?(resource: string, id: string): void
  /** Revokes the hold with that fence, or every hold, and tells the previous holders. */
  evict(resource: string, fence: number | null): Promise<ClaimView[]>
  /**
   * Takes a waiting claim out of the line, and tells its client that it is `lost`. Empty: no claim
   * with that id waits; a hold is left alone.
   */
  cancel(resource: string, id: string): Promise<ClaimView[]>
  /** Pins the capacity; claims that declare `declared` or `capacity` follow it from now on. */
  resize(resource: string, declared: number, capacity: number): Promise<void>
  /** The state of `key`. With `watch`, one `state` push follows at the next change. */
  read(key: string, watch: boolean): Promise<StateValue | null>
  /** Ends the watch of that state. Left out where an unused watch costs nothing. */
  unwatch?(key: string): void
  /** The states whose keys begin with `prefix`; in any order. */
  states(prefix: string): AsyncIterable<StateView>
  /** Compare-and-set of a state. */
  write(change: StateChange): Promise<StateOutcome>
  /**
   * The lines that have claims; asked by exact name, also an empty line whose capacity is pinned.
   */
  inspect(query: InspectQuery): AsyncIterable<LineView>
  /** The spaces of all clients; some may be empty. Left out: they cannot be listed. */
  spaces?(): Promise<string[]>
  /** Inspects the live store and reports risks. Left out: there is nothing to inspect. */
  check?(): Promise<Finding[]>
  /** Which run of the server answers, where a restart may lose writes. Left out: it loses none. */
  readonly origin?: Origin
  /** Why the store does not answer, for messages: `connect ECONNREFUSED …`; null: not known. */
  trouble?(): string | null
  /** Ends the connection. Its claims are left to lapse. Later calls fail with CLOSED. */
  close(): Promise<void>
}

/** Tells a quorum whether a member may have forgotten what it has granted. */
export interface Origin {
  /**
   * Counts the connections that were opened or lost. While it stays the same, the same run of the
   * server answers.
   */
  readonly link: number
  /** Names the present run of the server; null: a restart loses nothing that it has answered. */
  run(): Promise<string | null>
}

/**
 * How a claim enters the line:
 * - `queue`: at its end
 * - `try`: only if it is granted at once; otherwise it is refused and leaves nothing behind
 * - `steal`: at its front, after every hold was revoked
 * - `adopt`: in the place of another hold
 */
export type ClaimMode = 'queue' | 'try' | 'steal' | 'adopt'

/** A claim that a client sends. */
export interface ClaimRequest {
  readonly resource: string
  /** Made by the client, new for each attempt. */
  readonly id: string
  readonly permits: number
  /** The capacity that this claimant declares. */
  readonly capacity: number
  readonly leaseMs: number
  readonly presenceMs: number
  /** null: no cap. */
  readonly maxHoldMs: number | null
  readonly mode: ClaimMode
  /** The highest fence that this client has seen of the resource, or 0. */
  readonly floor: number
  /** How many successive fences to reserve; the hold's fence is the first. */
  readonly block: number
  /** About the owner, for people. Opaque to the store. */
  readonly info: string
  /** With `adopt`: the hold whose place it takes. */
  readonly adopts?: { readonly id: string; readonly fence: number }
  /**
   * With `queue`: refused as `full` if it would have to wait, and so many claims wait already.
   * Lapsed ones do not count. A claim that is in line already is never refused.
   */
  readonly maxWaiters?: number
}

/** The answer to a claim. */
export type ClaimReply = Granted | Waiting | Refused

/** The claim holds. */
export interface Granted {
  readonly status: 'granted'
  /**
   * How long this process delayed the request before it sent it. The lease counts from the sending.
   */
  readonly waitedMs?: number
  readonly fence: number
  /** How long the hold lives without renewal, from the handling of the request. */
  readonly leaseMs: number
  /** Whether others wait for it. Left out: not known, and the engine assumes that they do. */
  readonly isWanted?: boolean
}

/** The claim waits in line. */
export interface Waiting {
  readonly status: 'waiting'
  /** How long the place in line lives without renewal, from the handling of the request. */
  readonly presenceMs: number
  /** Whether this is the first waiting claim. */
  readonly isNext: boolean
  /** For the next claim: when the first hold ahead would lapse; null: not known. */
  readonly freeInMs: number | null
  /**
   * How many claims wait ahead of it, counted up to `MOST_AHEAD`. Given while pushes do not arrive:
   * the engine then asks more often for claims that are nearer to the front. Left out: it asks more
   * often for the next claim only.
   */
  readonly ahead?: number
  /**
   * At least the newest fence of this resource so far; this claim's own fence will be above it. A
   * pushed grant with a lower fence is a late one: it belongs to an earlier stay in line of the
   * same id, which has lapsed since.
   */
  readonly grantsAbove: number
}

/** The claim was not taken into the line. */
export interface Refused {
  readonly status: 'refused'
  /**
   * - `busy`: not free
   * - `capacity`: the resource has another
   * - `gone`: the hold to adopt ended
   * - `full`: `maxWaiters` claims wait already; nothing of this one is left in line
   */
  readonly reason: 'busy' | 'capacity' | 'gone' | 'full'
  /** With `capacity`: the one that the line has. */
  readonly capacity?: number
}

/** What a client asks for one of its claims in a pulse. */
export interface Beat {
  readonly resource: string
  readonly id: string
  /** If held: live at least that long from now, up to `maxHoldMs`. Never shortens. */
  readonly leaseMs: number
  /** If waiting: stay in line at least that long from now. */
  readonly presenceMs: number
  /** If held: shrink to this number of permits. */
  readonly permits?: number
  /** If held: reserve this number of further fences. */
  readonly block?: number
  /**
   * If held: reserve just these fences, and make `first` the fence of the claim. Done if `first` is
   * above every fence of the resource so far, or is the claim's fence; where the claim is
   * exclusive, also if it is above the claim's fence. Otherwise nothing changes. Not together with
   * `block`.
   */
  readonly fences?: { readonly first: number; readonly count: number }
}

/** What a pulse says about one claim. */
export type BeatReply = Held | Waiting | Gone

/** The claim still holds. */
export interface Held {
  readonly status: 'held'
  /** The fence of the claim; after `fences`, whether it is `first` tells if they are reserved. */
  readonly fence: number
  /** How long the lease still lasts, from the handling of the request. */
  readonly leaseMs: number
  /** The first of the further fences, where a block was asked for. */
  readonly block?: number
  /** Where `fences` could not be reserved: the newest fence of the resource, or a higher number. */
  readonly newest?: number
  /** Whether others wait for it. Left out: not known, and the engine assumes that they do. */
  readonly isWanted?: boolean
}

/** The claim is not in the line any more: released, revoked or lapsed. */
export interface Gone {
  readonly status: 'gone'
}

/** A message to one client. A hint: a lost one costs time, never correctness. */
export type Push =
  | GrantedPush
  | { readonly type: 'lost'; readonly resource: string; readonly id: string }
  /**
   * Another claim has begun to wait for that hold, or a try was refused. Only for holds with a
   * block of fences: others are passed on to their heirs only, which are next in line anyway. A
   * store may leave it to its replies.
   */
  | { readonly type: 'wanted'; readonly resource: string; readonly id: string }
  | { readonly type: 'state'; readonly key: string }
  /** Pushes may have been lost: ask about everything. */
  | { readonly type: 'gap' }

/** A waiting claim holds now. */
export interface GrantedPush {
  readonly type: 'granted'
  readonly resource: string
  readonly id: string
  readonly fence: number
  /**
   * The exclusive claims of the same client right behind it in line, in order. The fences after
   * this one are reserved for them, so that the client may pass the hold on to them one after the
   * other. A store may leave it out.
   */
  readonly heirs?: readonly string[]
  /** true: the store cannot say yet how long the hold lasts, so a pulse has to confirm it first. */
  readonly isUnconfirmed?: boolean
}

/** The value of a state. */
export interface StateValue {
  readonly value: string
  /** Unique among all values of one key, also after a delete. */
  readonly version: number
}

/** A state in a listing. */
export interface StateView extends StateValue {
  readonly key: string
}

/** A compare-and-set of a state. */
export interface StateChange {
  readonly key: string
  /** The version that was read; null: there must be no value. */
  readonly expect: number | null
  /** null deletes. */
  readonly value: string | null
  /** How long the value stays after this write; null: until it is deleted. */
  readonly retentionMs: number | null
}

/** What became of a compare-and-set. */
export interface StateOutcome {
  readonly written: boolean
  /** The value after the call, also if another client wrote it. */
  readonly current: StateValue | null
}

/** One result of an inspection of the live store. */
export interface Finding {
  /**
   * `risk`: locks work, but something can harm them. `fault`: they do not work, or are not safe.
   */
  readonly level: 'fine' | 'risk' | 'fault'
  /** What was inspected, in a word or two: `eviction`. */
  readonly about: string
  /** What was found and, unless it is fine, what to do. */
  readonly text: string
}

/** Which lines to list. */
export interface InspectQuery {
  /** Only resources whose names begin with this; '' for all. */
  readonly prefix: string
  /** Only the resource of exactly this name. */
  readonly resource?: string
}

/** A line in a listing. */
export interface LineView {
  readonly resource: string
  readonly capacity: number
  /** Where the capacity is pinned: the one that claims may declare as well. */
  readonly declared?: number
  /** In order of the line: holds first. */
  readonly claims: readonly ClaimView[]
}

/** A claim in a listing. */
export interface ClaimView {
  readonly id: string
  readonly permits: number
  /** null: it waits. */
  readonly fence: number | null
  readonly info: string
  /** How long it has been holding, or waiting. */
  readonly ageMs: number
  /** When it lapses without renewal. */
  readonly expiresInMs: number
}
