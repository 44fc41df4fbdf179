import { HoldfastError } from '../../../base/errors.js'
import type { Answer, ClientContext, Connection, Origin, Push, Store } from '../../../contract/store.js'
import { ForwardingConnection } from '../../network/forwarding.js'
import type { VirtualProcess } from '../../virtual-env.js'
import { isRefused, isReset } from './session.js'

/** How long a client waits before it tries again to reach a member that does not answer. */
const RECONNECT_MS = [5, 300] as const
/** How often a call is sent again to a member that is down. */
const MOST_ATTEMPTS = 5

/** When a call fails that is not told of the break of its connection. */
const LATE_FAILURE_MS = 5_000

/** What becomes of a call whose connection breaks before the answer. */
type Fate = 'fails' | 'waits' | 'is sent again'
const FATES: readonly Fate[] = ['fails', 'waits', 'is sent again']

/** One connection to the server, from its opening to its end. */
interface Wire {
  readonly connection: Connection
  /** What to do for each call under way when the client notices that the connection is broken. */
  readonly interrupt: Set<() => void>
}

/**
 * The client's end of its connections to a member, one after the other. It notices that one is
 * broken by a message from the server, or by the answer to its next call. From then on the link has
 * another number, and all calls go over a new connection.
 */
export class MemberConnection extends ForwardingConnection {
  readonly origin?: Origin
  readonly #store: Store
  readonly #client: ClientContext
  readonly #process: VirtualProcess
  #link = 1
  #wire: Wire
  #isClosed = false

  /** `store` is the member behind its network. */
  constructor(store: Store, client: ClientContext, process: VirtualProcess) {
    super()
    this.#store = store
    this.#client = client
    this.#process = process
    this.#wire = this.#open()
    const link = (): number => this.#link
    if (this.#wire.connection.origin)
      this.origin = {
        get link() {
          return link()
        },
        run: () => this.forward((inner) => inner.origin?.run() ?? null),
      }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#wire.connection.close()
  }

  #open(): Wire {
    const link = this.#link
    const push = (news: Push): void => this.#push(link, news)
    return { connection: this.#store.connect({ ...this.#client, push }), interrupt: new Set() }
  }

  protected override async forward<T>(work: (inner: Connection) => Answer<T>): Promise<T> {
    if (this.#isClosed) throw new HoldfastError('CLOSED', 'This connection is closed', this.#named())
    const { connection, interrupt } = this.#wire
    const link = this.#link
    const answer = Promise.resolve(work(connection))
    return new Promise((resolve, reject) => {
      const interrupted = (): void => resolve(this.#interrupted(answer, work))
      const end = (settle: () => void): void => {
        if (interrupt.delete(interrupted)) settle()
      }
      interrupt.add(interrupted)
      answer.then(
        (value) => end(() => resolve(value)),
        (error: unknown) => {
          if (isReset(error)) this.#breakOff(link)
          end(() => reject(error))
        },
      )
    })
  }

  async #interrupted<T>(answer: Promise<T>, work: (inner: Connection) => Answer<T>): Promise<T> {
    const fate = FATES[Math.floor(this.#process.random() * FATES.length)]
    if (fate === 'is sent again') return this.#sendAgain(work)
    // An answer that the old run had sent may still come.
    const answered = answer.catch(() => new Promise<never>(() => {}))
    const late = this.#pause(fate === 'waits' ? LATE_FAILURE_MS : 0).then(() => {
      throw new HoldfastError('STORE_UNAVAILABLE', 'The connection is lost', {
        ...this.#named(),
        retryable: true,
      })
    })
    return Promise.race([answered, late])
  }

  /**
   * Some drivers send again what was not answered, as soon as the server takes connections. It may
   * have been done already, and another run answers it.
   */
  async #sendAgain<T>(work: (inner: Connection) => Answer<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        if (this.#isClosed) throw new HoldfastError('CLOSED', 'This connection is closed', this.#named())
        return await work(this.#wire.connection)
      } catch (error) {
        if (!isRefused(error) || attempt === MOST_ATTEMPTS) throw error
        await this.#pauseToReconnect()
      }
    }
  }

  #push(link: number, news: Push): void {
    // A push over a connection that is known to be broken is a late one.
    if (link !== this.#link || this.#isClosed) return
    if (news.type === 'gap') this.#breakOff(link)
    else this.#client.push(news)
  }

  #breakOff(link: number): void {
    if (link !== this.#link || this.#isClosed) return
    const old = this.#wire
    this.#link++
    this.#wire = this.#open()
    const calls = [...old.interrupt]
    old.interrupt.clear()
    for (const interrupt of calls) interrupt()
    void old.connection.close()
    void this.#reconnect(this.#link)
  }

  /** Says that pushes may have been lost, once the new connection works. */
  async #reconnect(link: number): Promise<void> {
    try {
      await this.#wire.connection.pulse([])
      if (link === this.#link && !this.#isClosed) this.#client.push({ type: 'gap' })
    } catch {
      await this.#pauseToReconnect()
      if (link === this.#link && !this.#isClosed) void this.#reconnect(link)
    }
  }

  #pauseToReconnect(): Promise<void> {
    const [least, most] = RECONNECT_MS
    return this.#pause(least + this.#process.random() * (most - least))
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#process.timer(ms, resolve, { keepAlive: false })
    })
  }

  #named(): { store: string } {
    return { store: this.#store.name }
  }
}
