import { HoldfastError } from '../base/errors.js'
import { Heard } from '../calls/calls.js'
import type { ClaimView, Connection, Finding, InspectQuery, LineView, StateView } from '../contract/store.js'
import type { Engine } from '../engine/engine.js'

/** How long a failed caller waits to be told who holds the lock. */
const GLANCE_MS = 250
/** So long its answer is good for others: where many time out, a long line is not read for each. */
const GLANCE_KEPT_MS = 250

/**
 * What operators ask of a store: to look at lines, to break holds, to change capacities, to check
 * its health.
 */
export class Operator {
  readonly #engine: Engine
  /** By resource: the looks that are under way. */
  readonly #glances = new Map<string, Promise<LineView | null>>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Makes sure that the store is there. */
  async reach(): Promise<void> {
    await this.#repeated(() => this.#engine.connection.pulse([]))
  }

  /** How long the store took to answer; rejects if it does not within `timeoutMs`. */
  async ping(timeoutMs: number): Promise<number> {
    const { env, calls, connection } = this.#engine
    this.#engine.throwIfClosed()
    const startedAt = env.now()
    // Answers to other calls do not count.
    await calls.repeated(startedAt + timeoutMs, () => connection.pulse([]), new Heard())
    return env.now() - startedAt
  }

  /** Empty: no such hold (any more). */
  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const { calls, connection } = this.#engine
    this.#engine.throwIfClosed()
    // Without a fence it must not be repeated: if only the answer was lost, the second attempt
    // would break the next hold.
    if (fence === null) return calls.once(() => connection.evict(resource, null))
    const grant = this.#grantOf(resource, fence)
    const isIt = (claim: ClaimView): boolean =>
      claim.fence !== null && this.#grantOf(resource, claim.fence) === grant
    const holder = await this.#find(resource, isIt)
    return this.#takeOut(resource, holder, () => connection.evict(resource, grant))
  }

  /** Empty: no such claim waits (any more). */
  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    const { cancellations, connection } = this.#engine
    const waiter = await this.#find(resource, (claim) => claim.id === id && claim.fence === null)
    if (!waiter) return []
    // Before the claim is taken out: its client may ask for the mark at once.
    await cancellations.mark(id)
    return this.#takeOut(resource, waiter, () => connection.cancel(resource, id))
  }

  async #find(resource: string, isIt: (claim: ClaimView) => boolean): Promise<ClaimView | undefined> {
    return (await this.line(resource))?.claims.find(isIt)
  }

  /** What the store has taken out. `known`: what it should find, as it was before. */
  async #takeOut(
    resource: string,
    known: ClaimView | undefined,
    takeOut: () => Promise<ClaimView[]>,
  ): Promise<ClaimView[]> {
    let attempts = 0
    const taken = await this.#repeated(() => {
      attempts++
      return takeOut()
    })
    if (taken.length > 0 || attempts === 1 || !known) return taken
    // Gone at a later attempt: the first one did it, and only its answer was lost.
    return (await this.#find(resource, ({ id }) => id === known.id)) ? [] : [known]
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    this.#engine.throwIfClosed()
    await this.#repeated(() => this.#engine.connection.resize(resource, declared, capacity))
  }

  async spaces(): Promise<string[]> {
    const { connection, storeName } = this.#engine
    this.#engine.throwIfClosed()
    if (!connection.spaces) {
      const message = `The ${storeName} store cannot list its spaces; name one`
      throw new HoldfastError('UNSUPPORTED', message, { store: storeName })
    }
    const list = (): Promise<string[]> => connection.spaces?.() ?? Promise.resolve([])
    return (await this.#repeated(list)).sort()
  }

  async check(): Promise<Finding[]> {
    const { calls, connection } = this.#engine
    this.#engine.throwIfClosed()
    return connection.check ? calls.once(() => connection.check?.() ?? Promise.resolve([])) : []
  }

  /** The line of exactly that name; null: nobody is in it, and nothing is known of its capacity. */
  async line(resource: string): Promise<LineView | null> {
    this.#engine.throwIfClosed()
    return this.#repeated(() => this.#firstLine(resource))
  }

  /**
   * The line as one quick look shows it, for the message of an error; null where it cannot tell.
   * Callers whose waits end soon after each other share one look.
   */
  glance(resource: string): Promise<LineView | null> {
    const known = this.#glances.get(resource)
    if (known) return known
    const { env, calls } = this.#engine
    const look = calls
      .within(GLANCE_MS, () => this.#firstLine(resource), new Heard())
      .catch(() => null)
      .finally(() => env.timer(GLANCE_KEPT_MS, () => this.#glances.delete(resource), { keepAlive: false }))
    this.#glances.set(resource, look)
    return look
  }

  /** The lines, one by one; each has the store's timeout to come. */
  async *inspect(query: InspectQuery): AsyncGenerator<LineView, void, void> {
    for await (const line of this.#each((connection) => connection.inspect(query)))
      yield this.#asKnownHere(line)
  }

  /** The states whose keys begin with the prefix. */
  states(prefix: string): AsyncGenerator<StateView, void, void> {
    return this.#each((connection) => connection.states(prefix))
  }

  async *#each<T>(list: (connection: Connection) => AsyncIterable<T>): AsyncGenerator<T, void, void> {
    const { calls, connection } = this.#engine
    this.#engine.throwIfClosed()
    const listing = list(connection)[Symbol.asyncIterator]()
    for (;;) {
      const next = await calls.once(() => listing.next())
      if (next.done) return
      let isEnough = true
      try {
        yield next.value
        isEnough = false
      } finally {
        if (isEnough) await listing.return?.()
      }
    }
  }

  async #firstLine(resource: string): Promise<LineView | null> {
    const { connection } = this.#engine
    for await (const line of connection.inspect({ prefix: '', resource })) return this.#asKnownHere(line)
    return null
  }

  /**
   * Of its own leases this client knows which hold they serve now, and which of them are given up.
   */
  #asKnownHere(line: LineView): LineView {
    const claims = line.claims
      .filter((view) => !this.#isGivenUp(view))
      .map((view) => {
        const lease = view.fence === null ? undefined : this.#engine.leases.get(view.id)
        // Of readers there may be many on one lease: it is shown as everybody else sees it.
        const holder = lease?.grant === view.fence && !lease.isShared ? lease.served[0] : undefined
        if (!holder) return view
        const ageMs = Math.min(view.ageMs, this.#engine.env.now() - holder.heldAt)
        return { ...view, fence: holder.fence, ageMs }
      })
    return { ...line, claims }
  }

  /** A lost hold is not given up: as long as the store has it, nobody else gets the lock. */
  #isGivenUp({ id, fence }: ClaimView): boolean {
    const { clientId, leases, releases } = this.#engine
    if (clientOf(id) !== clientId || leases.has(id)) return false
    return fence === null || releases.isWithdrawn(id)
  }

  /** The fence by which the store knows that hold. */
  #grantOf(resource: string, fence: number): number {
    for (const lease of this.#engine.leases.values())
      if (lease.resource === resource && lease.served.some((request) => request.fence === fence))
        return lease.grant
    return fence
  }

  #repeated<T>(call: () => Promise<T>): Promise<T> {
    const { env, calls } = this.#engine
    return calls.repeated(env.now() + calls.storeTimeoutMs, call)
  }
}

/** The client that made a claim, by the claim's id. */
export function clientOf(id: string): string {
  const end = id.lastIndexOf(':')
  return end < 0 ? id : id.slice(0, end)
}
