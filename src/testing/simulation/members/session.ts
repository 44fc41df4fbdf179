import { HoldfastError } from '../../../base/errors.js'
import type {
  Answer,
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClientContext,
  Connection,
  Origin,
  StateChange,
  StateOutcome,
} from '../../../contract/store.js'
import { ForwardingConnection } from '../../network/forwarding.js'

/** What a session sees of its server. */
export interface SessionServer {
  readonly name: string
  readonly isUp: boolean
  /** Whether clients can ask for the run, and see that a connection was lost. */
  readonly tellsRun: boolean
  /** How it names its run to clients; null: it says that a restart loses nothing. */
  readonly runName: string | null
  /** Connects to the store of the present run. */
  enter(session: Session): Connection
  /** Whether this was the client's last connection. */
  leave(session: Session): boolean
  noteClaim(request: ClaimRequest, reply: ClaimReply): void
  noteBeats(beats: readonly Beat[], replies: readonly BeatReply[]): void
  noteWrite(space: string, change: StateChange, outcome: StateOutcome): void
}

/**
 * The server's end of one connection. The first request that arrives opens it, and from then on
 * only that run of the server answers over it.
 */
export class Session extends ForwardingConnection {
  readonly client: ClientContext
  readonly origin?: Origin
  readonly #server: SessionServer
  #inner: Connection | null = null
  #isEnded = false

  constructor(server: SessionServer, client: ClientContext) {
    super()
    this.#server = server
    this.client = client
    if (server.tellsRun) this.origin = { link: 0, run: () => this.forward(async () => server.runName) }
  }

  override claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.forward(async (inner) => {
      const reply = await inner.claim(request)
      this.#server.noteClaim(request, reply)
      return reply
    })
  }

  override pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.forward(async (inner) => {
      const replies = await inner.pulse(beats)
      this.#server.noteBeats(beats, replies)
      return replies
    })
  }

  override write(change: StateChange): Promise<StateOutcome> {
    return this.forward(async (inner) => {
      const outcome = await inner.write(change)
      this.#server.noteWrite(this.client.space, change, outcome)
      return outcome
    })
  }

  async close(): Promise<void> {
    if (this.#inner && this.#server.leave(this)) await this.#inner.close()
  }

  /** Breaks the connection. If it is hidden, the next run goes on with it. */
  end({ isHidden }: { isHidden: boolean }): void {
    void this.#inner?.close()
    this.#inner = null
    if (isHidden) return
    this.#isEnded = true
    // The client hears of it if the network lets it; otherwise with its next call.
    this.client.push({ type: 'gap' })
  }

  protected override async forward<T>(work: (inner: Connection) => Answer<T>): Promise<T> {
    const server = this.#server
    if (this.#isEnded) throw unavailable(server.name, RESET)
    if (!server.isUp) throw unavailable(server.name, REFUSED)
    this.#inner ??= server.enter(this)
    return work(this.#inner)
  }
}

const RESET = 'The connection was reset'
const REFUSED = 'The connection was refused'

/** A call came over a connection whose server has restarted since. */
export function isReset(error: unknown): boolean {
  return error instanceof HoldfastError && error.message === RESET
}

/** The server is down. */
export function isRefused(error: unknown): boolean {
  return error instanceof HoldfastError && error.message === REFUSED
}

function unavailable(store: string, message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { store, retryable: true })
}
