import { HoldfastError } from '../../base/errors.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import type { SqliteBackend } from './backend.js'
import type { BatchCallOptions } from './batches.js'
import type { SqliteStoreClient } from './clients.js'
import type { SqliteSpace } from './lock-file.js'

/** How many states are read at a time. */
const STATES = 200
/** The lowest character of stored text: a name with it sorts right behind that name. */
const JUST_AFTER = '\x01'

export class SqliteConnection implements Connection {
  readonly #backend: SqliteBackend
  readonly #context: ClientContext
  readonly #client: SqliteStoreClient
  /** Claims that wait for their transaction. */
  readonly #pendingClaims = new Map<string, Promise<ClaimReply>>()
  #closing: Promise<void> | undefined

  constructor(backend: SqliteBackend, context: ClientContext) {
    this.#backend = backend
    this.#context = context
    this.#client = backend.connect(context)
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const key = `${request.id.length} ${request.id} ${request.resource}`
    // The engine repeats a claim that is not answered in time. While the file is busy, that would
    // pile up calls.
    const pending = this.#pendingClaims.get(key)
    if (pending) return pending
    this.#backend.listen()
    const reply = this.#write(({ lines }) => {
      // A repetition from now on is a call of its own: its lease must not count from before it was
      // sent.
      this.#pendingClaims.delete(key)
      return lines.claim(this.#client.address, request)
    })
    this.#pendingClaims.set(key, reply)
    reply.catch(() => this.#pendingClaims.delete(key))
    return reply
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    if (beats.length === 0) return this.#read(() => [])
    // Thousands of new claims may be queued, for longer than the leases of holds last.
    return this.#write(({ lines }) => lines.pulse(beats), { isUrgent: true })
  }

  async release(resource: string, id: string): Promise<boolean> {
    return this.#write(({ lines }) => lines.release(resource, id))
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#write(({ lines }) => lines.evict(resource, fence))
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#write(({ lines }) => lines.cancel(resource, id))
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#write(({ lines }) => lines.resize(resource, declared, capacity))
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const { address, watched } = this.#client
    if (!watch) return this.#read(({ states }) => states.read(address, key, false))
    this.#backend.listen()
    return this.#write(({ states }) => {
      watched.add(key)
      return states.read(address, key, true)
    })
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    for (let from: string | null = prefix; from !== null; ) {
      const start: string = from
      const page = await this.#read(({ states }) => states.page(prefix, start, STATES))
      yield* page.states
      from = page.next
    }
  }

  async write(change: StateChange): Promise<StateOutcome> {
    return this.#write(({ states }) => states.write(change))
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    const { prefix, resource } = query
    if (resource !== undefined) {
      const view = resource.startsWith(prefix) ? await this.#read(({ lines }) => lines.view(resource)) : null
      if (view) yield view
      return
    }
    for (let from: string | undefined = prefix; from !== undefined; ) {
      const found = await this.#nextLine(from, prefix)
      if (found.view && found.view.claims.length > 0) yield found.view
      from = found.next
    }
  }

  spaces(): Promise<string[]> {
    this.#checkOpen()
    return this.#backend.submit((file) => file.spaces(), { isRead: true })
  }

  check(): Promise<Finding[]> {
    this.#checkOpen()
    return this.#backend.submit((file) => file.check(), { isRead: true })
  }

  close(): Promise<void> {
    this.#closing ??= this.#backend.disconnect(this.#client)
    return this.#closing
  }

  /** The first line at or after `from` whose name has the prefix, and where to go on. */
  #nextLine(from: string, prefix: string): Promise<{ view: LineView | null; next: string | undefined }> {
    return this.#read(({ rows, lines }) => {
      const name = rows.resourceFrom(from)
      if (name === undefined || !name.startsWith(prefix)) return { view: null, next: undefined }
      return { view: lines.view(name), next: name + JUST_AFTER }
    })
  }

  async #write<T>(work: (space: SqliteSpace) => T, options?: BatchCallOptions): Promise<T> {
    this.#checkOpen()
    return this.#backend.submit((file) => work(file.space(this.#context.space)), options)
  }

  async #read<T>(work: (space: SqliteSpace) => T): Promise<T> {
    this.#checkOpen()
    return this.#backend.submit((file) => work(file.space(this.#context.space)), { isRead: true })
  }

  #checkOpen(): void {
    if (!this.#closing) return
    throw new HoldfastError('CLOSED', 'This connection to the SQLite store is closed', { store: 'sqlite' })
  }
}
