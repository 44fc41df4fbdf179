import { HoldfastError } from '../../base/errors.js'
import type { Answer, ClientContext, Connection, Origin, Push, Store } from '../../contract/store.js'
import { ForwardingConnection } from './forwarding.js'
import type { Link } from './link.js'

/** One client's connection, with a bad network in between. */
export class LossyConnection extends ForwardingConnection {
  readonly origin?: Origin
  readonly #store: Store
  readonly #client: ClientContext
  readonly #link: Link
  readonly #inner: Connection
  #isClosed = false
  #hasMissedPushes = false
  #underWay = 0

  constructor(store: Store, client: ClientContext, link: Link) {
    super()
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
      run: () => this.forward(() => inner.run()),
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#closeInner()
  }

  /** Requests that are on their way still arrive, as those of a process that has just ended do. */
  async #closeInner(): Promise<void> {
    if (this.#isClosed && this.#underWay === 0) await this.#inner.close()
  }

  protected override forward<T>(work: (inner: Connection) => Answer<T>): Promise<T> {
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
        const answered = async (): Promise<T> => work(this.#inner)
        answered().then(
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
