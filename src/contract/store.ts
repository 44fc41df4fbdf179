/**
 * A place where lines live. A store value is a description; `connect` makes one client's connection to it.
 * Several clients may connect to one store value, also in one process. See docs/decisions/0001-store-contract.md.
 */
export interface Store {
  /** Names the store in errors and listings: `memory`, `sqlite`. */
  readonly name: string
  readonly capabilities: Capabilities
  /** Does no input or output: the first call opens what it needs, and reports what is wrong. */
  connect(client: ClientContext): Connection
}

/** What a store can do, each flag told by what the engine does with it. */
export interface Capabilities {
  /** false: a hold lives as long as the client's session; `lease` is ignored and the replies tell the real one. */
  readonly perHoldLease: boolean
  /** How many beats the engine puts into one `pulse` call. */
  readonly maxBeats: number
  /**
   * How often the engine asks for a claim that is next in line, besides the pulse, because this store cannot be sure to push.
   * `null`: pushes arrive, or the store says `gap`. May change while the client runs.
   */
  readonly askNextEveryMs: number | null
  /** true: a grant that only a push tells of is given out after the claim's own pulse was answered, which makes it safe here. */
  readonly confirmHandOffs?: boolean
  /**
   * true: a `wanted` push tells the holder of a block of fences as soon as somebody waits for it, or a try was refused.
   * Otherwise a lease that lingers goes back after 50 ms. May change while the client runs.
   */
  readonly tellsWanted?: boolean
  /** true: `claim` and `release` answer within the call, so the engine sets no deadline for them. */
  readonly answersAtOnce?: boolean
  /** How many fences one claim or beat may reserve; left out: any number. 1: holds are not passed on inside a process. */
  readonly maxBlock?: number
}

/** Who connects, and how the store reaches it. */
export interface ClientContext {
  /** Unlike any other client's. */
  readonly id: string
  readonly space: string
  /** Takes news at any moment after `connect`, also before the reply to the call that caused it. Never throws. */
  push(news: Push): void
}

/** A store that answers within the call need not make a promise: see `answersAtOnce`. */
export type Answer<T> = T | Promise<T>

/** One client's connection. Every call answers or fails; none sleeps, retries or watches the caller's signal. */
export interface Connection {
  /** Joins the line. The same id again gives the present answer for that claim. */
  claim(request: ClaimRequest): Answer<ClaimReply>
  /** Renews holds and keeps places; answers one reply for each beat, in order. No beats: only checks that the store is there. */
  pulse(beats: readonly Beat[]): Promise<BeatReply[]>
  /** Leaves the line, as holder or as waiter. false: the claim was not there any more. */
  release(resource: string, id: string): Answer<boolean>
  /** Removes the hold with that fence, or every hold, and tells the robbed. */
  evict(resource: string, fence: number | null): Promise<ClaimView[]>
  /** Pins the capacity of a counting resource; claims that declare `declared` or `capacity` follow it from now on. */
  resize(resource: string, declared: number, capacity: number): Promise<void>
  /** The state under `key`. With `watch`, one `state` push follows at the next change. */
  read(key: string, watch: boolean): Promise<StateValue | null>
  /** Nobody here wants to be told of that state any more. Left out where a watch that is left costs nothing. */
  unwatch?(key: string): void
  /** Compare-and-set of the state under a key. */
  write(change: StateChange): Promise<StateOutcome>
  /** The lines with at least one claim, as they are; asked by exact name, also an empty one whose capacity is pinned. */
  inspect(query: InspectQuery): AsyncIterable<LineView>
  /** The spaces of this store, whichever client uses them; some may be empty. Left out where spaces cannot be listed. */
  spaces?(): Promise<string[]>
  /** Looks at the live store, and says in plain words what is risky about it. Left out where there is nothing to look at. */
  check?(): Promise<Finding[]>
  /** Why no answer comes, where that is known: `connect ECONNREFUSED 127.0.0.1:2181`; null: it is not. For the message of an error. */
  trouble?(): string | null
  /** Ends the connection. What it still has in lines is left to lapse. Calls after that fail with CLOSED. */
  close(): Promise<void>
}

/**
 * How a claim enters the line:
 * - `queue`: at its end
 * - `try`: only if it is granted at once; otherwise it is refused and leaves nothing behind
 * - `steal`: at its front, after every hold was removed
 * - `adopt`: in the very place of another hold
 */
export type ClaimMode = 'queue' | 'try' | 'steal' | 'adopt'

export interface ClaimRequest {
  readonly resource: string
  /** New for each attempt, made by the client. */
  readonly id: string
  readonly permits: number
  /** What this claimant believes the capacity to be. */
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
  /** Who asks, for people: opaque to the store. */
  readonly info: string
  /** With `adopt`: the hold whose place it takes. */
  readonly adopts?: { readonly id: string; readonly fence: number }
}

export type ClaimReply = Granted | Waiting | Refused

export interface Granted {
  readonly status: 'granted'
  /** How long the request waited in this process before it was sent, where the store sends a few at a time. The lease counts from after that. */
  readonly waitedMs?: number
  readonly fence: number
  /** How long the hold lives from the handling of the request, if nothing renews it. */
  readonly leaseMs: number
  /** Whether others wait for it. Left out: this store cannot tell, which the engine takes for yes. */
  readonly isWanted?: boolean
}

export interface Waiting {
  readonly status: 'waiting'
  /** How long the place lives from the handling of the request, if nothing renews it. */
  readonly presenceMs: number
  /** Whether this claim is the first of those that wait. */
  readonly isNext: boolean
  /** For the next one: when the first of the holds ahead would lapse; null if not known. */
  readonly freeInMs: number | null
  /**
   * How many claims wait ahead of it, counted up to `MOST_AHEAD`. Given while pushes are not heard: the engine then asks for
   * this claim the more often, the nearer it is to the front. Left out: only the next one is asked for more often.
   */
  readonly ahead?: number
  /**
   * At least the newest fence of this resource so far; if this claim is granted, its fence is above it. By this a client tells
   * the push of a grant that it may trust from one that was long under way, and whose claim has lapsed and was made anew since.
   */
  readonly grantsAbove: number
}

export interface Refused {
  readonly status: 'refused'
  /** `busy`: not to be had at once. `capacity`: the resource has another capacity. `gone`: the hold to adopt is no more. */
  readonly reason: 'busy' | 'capacity' | 'gone'
  /** The capacity that the line remembers, with `capacity`. */
  readonly capacity?: number
}

/** What a client says of one of its claims in a pulse. */
export interface Beat {
  readonly resource: string
  readonly id: string
  /** If it is held: live at least that long from now, as far as `maxHoldMs` allows. Never shortens. */
  readonly leaseMs: number
  /** If it waits: keep the place that long from now. */
  readonly presenceMs: number
  /** If it is held: shrink to so many permits. */
  readonly permits?: number
  /** If it is held: reserve so many further fences. */
  readonly block?: number
}

export type BeatReply = Held | Waiting | Gone

export interface Held {
  readonly status: 'held'
  readonly fence: number
  /** What is left of the lease, from the handling of the request. */
  readonly leaseMs: number
  /** The first of the further fences, where a block was asked for. */
  readonly block?: number
  /** Whether others wait for it. Left out: this store cannot tell, which the engine takes for yes. */
  readonly isWanted?: boolean
}

export interface Gone {
  readonly status: 'gone'
}

/** News for one client. Hints: losing one costs time, never correctness. */
export type Push =
  | GrantedPush
  | { readonly type: 'lost'; readonly resource: string; readonly id: string }
  /**
   * Others have begun to wait for that hold, or a try was refused. Only holds with a block of fences are told: others are passed on
   * to their heirs alone, who come next anyway. A store may leave it to its answers.
   */
  | { readonly type: 'wanted'; readonly resource: string; readonly id: string }
  | { readonly type: 'state'; readonly key: string }
  /** Something may have been missed: ask for everything. */
  | { readonly type: 'gap' }

export interface GrantedPush {
  readonly type: 'granted'
  readonly resource: string
  readonly id: string
  readonly fence: number
  /**
   * Those of the same client who stand right behind it in line, in that order, each wanting all of it. The fences that follow this one are kept
   * for them, so that the client may pass the hold on to them, one after the other. A store may leave it out.
   */
  readonly heirs?: readonly string[]
}

export interface StateValue {
  readonly value: string
  /** Never the same for two values of one key, also not after a delete. */
  readonly version: number
}

export interface StateChange {
  readonly key: string
  /** The version that was read; null: there must be none. */
  readonly expect: number | null
  /** null deletes. */
  readonly value: string | null
  /** How long the value is kept after this write; null: until it is deleted. */
  readonly retentionMs: number | null
}

export interface StateOutcome {
  readonly written: boolean
  /** The value after the call, whoever wrote it. */
  readonly current: StateValue | null
}

/** One thing that a look at the live store has shown. */
export interface Finding {
  /** `risk`: locks work, but something can harm them. `fault`: they do not work, or are not safe. */
  readonly level: 'fine' | 'risk' | 'fault'
  /** What was looked at, in a word or two: `eviction`. */
  readonly about: string
  /** What was found and, unless it is fine, what to do. */
  readonly text: string
}

export interface InspectQuery {
  /** Only resources whose names begin so; '' for all. */
  readonly prefix: string
  /** Only the resource of exactly this name. */
  readonly resource?: string
}

export interface LineView {
  readonly resource: string
  readonly capacity: number
  /** In the order of the line: holds first. */
  readonly claims: readonly ClaimView[]
}

export interface ClaimView {
  readonly id: string
  readonly permits: number
  /** null: it waits. */
  readonly fence: number | null
  readonly info: string
  /** How long it has held (or waited) so far. */
  readonly ageMs: number
  /** When it lapses, if nothing renews it. */
  readonly expiresInMs: number
}
