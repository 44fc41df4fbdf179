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
} from '../../contract/store.js'
import type { SqliteBackend } from './backend.js'
import type { CallOptions } from './batches.js'
import type { LocalClient } from './clients.js'
import type { Space } from './lock-file.js'

/** No stored name begins with the other one and this, except the ones that come after it: stored text has no NUL. */
const JUST_AFTER = '\x01'

export class SqliteConnection implements Connection {
  readonly #backend: SqliteBackend
  readonly #context: ClientContext
  readonly #client: LocalClient
  /** Claims whose turn has not come yet. */
  readonly #asked = new Map<string, Promise<ClaimReply>>()
  #closing: Promise<void> | undefined

  constructor(backend: SqliteBackend, context: ClientContext) {
    this.#backend = backend
    this.#context = context
    this.#client = backend.connect(context)
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const key = `${request.id.length} ${request.id} ${request.resource}`
    // The engine asks again when an answer is late. Where calls wait for the file, that would only make more of them.
    const asked = this.#asked.get(key)
    if (asked) return asked
    this.#backend.listen()
    const reply = this.#change(({ lines }) => {
      // What is asked from now on is answered by itself: its lease must not count from before it was sent.
      this.#asked.delete(key)
      return lines.claim(this.#client.address, request)
    })
    this.#asked.set(key, reply)
    reply.catch(() => this.#asked.delete(key))
    return reply
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    if (beats.length === 0) return this.#look(() => [])
    // Thousands of new claims may wait for their turn, for longer than those that are held have left.
    return this.#change(({ lines }) => lines.pulse(beats), { isUrgent: true })
  }

  async release(resource: string, id: string): Promise<boolean> {
    return this.#change(({ lines }) => lines.release(resource, id))
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#change(({ lines }) => lines.evict(resource, fence))
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#change(({ lines }) => lines.resize(resource, declared, capacity))
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const { address, watched } = this.#client
    if (!watch) return this.#look(({ states }) => states.read(address, key, false))
    this.#backend.listen()
    return this.#change(({ states }) => {
      watched.add(key)
      return states.read(address, key, true)
    })
  }

  async write(change: StateChange): Promise<StateOutcome> {
    return this.#change(({ states }) => states.write(change))
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    const { prefix, resource } = query
    if (resource !== undefined) {
      const view = resource.startsWith(prefix) ? await this.#look(({ lines }) => lines.view(resource)) : null
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
    return this.#backend.submit((file) => file.spaces(), { isLook: true })
  }

  check(): Promise<Finding[]> {
    this.#checkOpen()
    return this.#backend.submit((file) => file.check(), { isLook: true })
  }

  close(): Promise<void> {
    this.#closing ??= this.#backend.leave(this.#client)
    return this.#closing
  }

  /** The first line from a name on, as long as names begin with the prefix, and where to go on. */
  #nextLine(from: string, prefix: string): Promise<{ view: LineView | null; next: string | undefined }> {
    return this.#look(({ rows, lines }) => {
      const name = rows.resourceFrom(from)
      if (name === undefined || !name.startsWith(prefix)) return { view: null, next: undefined }
      return { view: lines.view(name), next: name + JUST_AFTER }
    })
  }

  async #change<T>(work: (space: Space) => T, options?: CallOptions): Promise<T> {
    this.#checkOpen()
    return this.#backend.submit((file) => work(file.space(this.#context.space)), options)
  }

  async #look<T>(work: (space: Space) => T): Promise<T> {
    this.#checkOpen()
    return this.#backend.submit((file) => work(file.space(this.#context.space)), { isLook: true })
  }

  #checkOpen(): void {
    if (!this.#closing) return
    throw new HoldfastError('CLOSED', 'This connection to the SQLite store is closed', { store: 'sqlite' })
  }
}
