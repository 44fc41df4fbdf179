import { type Env, systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import type {
  Answer,
  Beat,
  BeatReply,
  Capabilities,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  Push,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
  Store,
} from '../../contract/store.js'
import { EmbeddedLines } from '../embedded/lines.js'
import { EmbeddedStates } from '../embedded/states.js'
import { MemoryRows } from './rows.js'

/** The options of `memory`. */
export interface MemoryOptions {
  /** Time, timers and randomness in place of the machine's, for simulations. */
  env?: Env | undefined
}

/**
 * A store inside this process: for unit tests, and for work that one process shares among its own
 * tasks. Clients of one store value share its lines; two store values share nothing.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const locks = new Holdfast(memory())
 * await locks.mutex('report').run(async () => console.log('alone'))
 * ```
 */
export function memory(options: MemoryOptions = {}): Store {
  return new MemoryStore(checkOptions(options, { env: true }, '{}').env ?? systemEnv)
}

class MemoryStore implements Store {
  readonly name = 'memory'
  readonly capabilities: Capabilities = {
    perHoldLease: true,
    maxBeats: 10_000,
    askNextEveryMs: null,
    answersAtOnce: true,
    tellsWanted: true,
    takesFences: true,
  }
  readonly #spaces = new Map<string, MemorySpace>()
  readonly #env: Env

  constructor(env: Env) {
    this.#env = env
  }

  connect(client: ClientContext): Connection {
    const space = this.#spaces.get(client.space) ?? new MemorySpace(this.#env)
    this.#spaces.set(client.space, space)
    return new MemoryConnection(space, client, this.#spaces)
  }
}

/** The lines, states and clients of one space. */
class MemorySpace {
  readonly rows: MemoryRows
  readonly lines: EmbeddedLines
  readonly states: EmbeddedStates
  readonly clients = new Map<string, ClientContext>()
  #pushes: { client: string; news: Push }[] = []

  constructor(env: Env) {
    const tell = (client: string, news: Push): void => {
      this.#pushes.push({ client, news })
    }
    this.rows = new MemoryRows(() => env.now())
    this.lines = new EmbeddedLines(this.rows, { now: () => env.now(), wallMs: () => env.wallMs(), tell })
    this.states = new EmbeddedStates(this.rows, {
      now: () => env.now(),
      nextVersion: () => this.lines.nextNumber(0, 1),
      tell,
    })
  }

  /**
   * Sends the pushes of a call, after that call is complete: a client may answer a push with a
   * call.
   */
  deliver(): void {
    if (this.#pushes.length === 0) return
    const pushes = this.#pushes
    this.#pushes = []
    for (const { client, news } of pushes) this.clients.get(client)?.push(news)
  }
}

class MemoryConnection implements Connection {
  readonly #space: MemorySpace
  readonly #client: ClientContext
  readonly #spaces: ReadonlyMap<string, MemorySpace>
  #isClosed = false

  constructor(space: MemorySpace, client: ClientContext, spaces: ReadonlyMap<string, MemorySpace>) {
    this.#space = space
    this.#client = client
    this.#spaces = spaces
    space.clients.set(client.id, client)
  }

  claim(request: ClaimRequest): Answer<ClaimReply> {
    if (this.#isClosed) return Promise.reject(closed())
    try {
      return this.#done(this.#space.lines.claim(this.#client.id, request))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#done(this.#open().lines.pulse(beats))
  }

  release(resource: string, id: string): Answer<boolean> {
    if (this.#isClosed) return Promise.reject(closed())
    return this.#done(this.#space.lines.release(resource, id))
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#done(this.#open().lines.evict(resource, fence))
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#done(this.#open().lines.cancel(resource, id))
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    this.#done(this.#open().lines.resize(resource, declared, capacity))
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.#open().states.read(this.#client.id, key, watch)
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    yield* this.#open().states.page(prefix, prefix, Infinity).states
  }

  async write(change: StateChange): Promise<StateOutcome> {
    return this.#done(this.#open().states.write(change))
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    const { rows } = this.#open()
    const names = query.resource === undefined ? [...rows.resources()] : [query.resource]
    for (const resource of names.filter((name) => name.startsWith(query.prefix)).sort()) {
      const view = this.#open().lines.view(resource)
      if (view && (query.resource !== undefined || view.claims.length > 0)) yield view
    }
  }

  async spaces(): Promise<string[]> {
    this.#open()
    return [...this.#spaces.keys()]
  }

  unwatch(key: string): void {
    this.#space.rows.unwatch(key, this.#client.id)
  }

  async check(): Promise<Finding[]> {
    const text =
      'Only this process sees these locks; for several processes use sqlite(), redis() or another store.'
    return [{ level: 'risk', about: 'reach', text }]
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#space.clients.delete(this.#client.id)
    this.#space.rows.forgetWatcher(this.#client.id)
  }

  #open(): MemorySpace {
    if (this.#isClosed) throw closed()
    return this.#space
  }

  #done<T>(reply: T): T {
    this.#space.deliver()
    return reply
  }
}

function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This connection to the memory store is closed', { store: 'memory' })
}
