import { HoldfastError } from '../../base/errors.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  InspectQuery,
  LineView,
  Origin,
  Push,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
  Store,
} from '../../contract/store.js'
import type { Link } from './link.js'

/** One client's connection, with a bad network in between. */
export class LossyConnection implements Connection {
  readonly origin?: Origin
  readonly #store: Store
  readonly #client: ClientContext
  readonly #link: Link
  readonly #inner: Connection
  #isClosed = false
  #hasMissedPushes = false
  #underWay = 0

  constructor(store: Store, client: ClientContext, link: Link) {
    this.#store = store
    this.#client = client
    this.#link = link
    this.#inner = store.connect({ ...client, push: (news) => this.#push(news) })
    const { origin } = this.#inner
    if (origin) this.origin = this.#lossyOrigin(origin)
  }

  /** The question for the run of the server travels as every call does. */
  #lossyOrigin(inner: Origin): Origin {
    return {
      get link() {
        return inner.link
      },
      run: () => this.#call(() => inner.run()),
    }
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.#call(async (inner) => inner.claim(request))
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#call((inner) => inner.pulse(beats))
  }

  release(resource: string, id: string): Promise<boolean> {
    return this.#call(async (inner) => inner.release(resource, id))
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#call((inner) => inner.evict(resource, fence))
  }

  cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#call((inner) => inner.cancel(resource, id))
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#call((inner) => inner.resize(resource, declared, capacity))
  }

  read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.#call((inner) => inner.read(key, watch))
  }

  write(change: StateChange): Promise<StateOutcome> {
    return this.#call((inner) => inner.write(change))
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    yield* await this.#call(async (inner) => {
      const states: StateView[] = []
      for await (const state of inner.states(prefix)) states.push(state)
      return states
    })
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    yield* await this.#call(async (inner) => {
      const views: LineView[] = []
      for await (const view of inner.inspect(query)) views.push(view)
      return views
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#closeInner()
  }

  /** Requests that are on their way still arrive, as those of a process that has just ended do. */
  async #closeInner(): Promise<void> {
    if (this.#isClosed && this.#underWay === 0) await this.#inner.close()
  }

  #call<T>(work: (inner: Connection) => Promise<T>): Promise<T> {
    const { name } = this.#store
    if (this.#isClosed)
      return Promise.reject(new HoldfastError('CLOSED', 'This connection is closed', { store: name }))
    return new Promise((resolve, reject) => {
      // After the first of answer and failure the other changes nothing: a promise settles once.
      const fail = (): void =>
        reject(new HoldfastError('STORE_UNAVAILABLE', 'No answer came', { store: name, retryable: true }))
      const cancel = this.#link.process.timer(this.#link.patienceMs(), fail, { keepAlive: false })
      const answer = (settle: () => void): void =>
        this.#link.reply(() => {
          cancel()
          settle()
        })
      const arrive = (): void => {
        work(this.#inner).then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        )
      }
      this.#underWay++
      this.#link.request(arrive, () => {
        this.#underWay--
        void this.#closeInner()
      })
    })
  }

  #push(news: Push): void {
    const arrive = (): void => {
      if (!this.#isClosed) this.#client.push(news)
    }
    this.#link.push(arrive, () => this.#missed())
  }

  /** A store whose subscription broke says so when it is back: something may have been missed. */
  #missed(): void {
    if (this.#hasMissedPushes) return
    this.#hasMissedPushes = true
    this.#link.onMend(() => {
      this.#hasMissedPushes = false
      this.#push({ type: 'gap' })
    })
  }
}
