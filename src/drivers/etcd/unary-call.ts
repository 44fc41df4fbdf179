import type { Linked, LinkedList } from '../../base/linked-list.js'
import { nothing } from '../../base/nothing.js'
import type { GrpcCall, GrpcListener } from './call.js'
import type { EtcdChannel } from './channel.js'
import { EtcdError } from './errors.js'

/** How often a call is sent again because its token was refused. */
const MOST_REPEATS = 2

/** Decides what an answer means for the connection. */
export interface CallOwner {
  /** Whether the call is settled by this answer; otherwise it will be sent again. */
  onAnswer(connection: EtcdChannel, call: UnaryCall, error: EtcdError | null): boolean
}

/** One request with one answer. It is in `open` until it is settled. */
export class UnaryCall implements GrpcListener, Linked<UnaryCall> {
  before: UnaryCall | null = null
  after: UnaryCall | null = null
  readonly promise: Promise<Buffer>
  readonly deadlineAt: number
  /** How many calls had been answered when it was sent. */
  answersBefore = 0
  /** On our monotonic clock. */
  sentAt = -Infinity
  readonly #path: string
  readonly #message: Buffer
  readonly #open: LinkedList<UnaryCall> | null
  #resolve: (answer: Buffer) => void = nothing
  #reject: (error: EtcdError) => void = nothing
  #call: GrpcCall | null = null
  /** It owes the answer. */
  #connection: EtcdChannel | null = null
  #owner: CallOwner | null = null
  #answer: Buffer | null = null
  #repeats = 0

  constructor(path: string, message: Buffer, deadlineAt: number, open: LinkedList<UnaryCall> | null = null) {
    this.#path = path
    this.#message = message
    this.deadlineAt = deadlineAt
    this.#open = open
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    open?.push(this)
  }

  get isSent(): boolean {
    return this.#call !== null
  }

  send(connection: EtcdChannel, token: string | null, owner: CallOwner | null = null): void {
    this.#answer = null
    const call = connection.open(this.#path, token, this, this.#message)
    // It is sent on the next connection.
    if (!call) return
    this.#call = call
    this.#owner = owner
    this.#connection = connection
    connection.owe()
  }

  onMessage(message: Buffer): void {
    this.#answer = message
  }

  onEnd(error: EtcdError | null): void {
    const [connection, answer] = [this.#connection, this.#answer]
    this.#pay()
    this.#call = null
    if (connection && this.#owner && !this.#owner.onAnswer(connection, this, error)) return
    if (error) this.fail(error)
    else if (answer) this.#settle(answer)
    else this.fail(new EtcdError('INTERNAL', 'etcd answered without a message', { maybeDone: true }))
  }

  /** Whether the call, which was refused for its token, may be sent once more. */
  mayRepeat(): boolean {
    return this.#repeats++ < MOST_REPEATS
  }

  fail(error: EtcdError): void {
    this.#open?.remove(this)
    this.#pay()
    this.#call?.cancel()
    this.#call = null
    this.#reject(error)
  }

  #pay(): void {
    this.#connection?.paid()
    this.#connection = null
  }

  #settle(answer: Buffer): void {
    this.#open?.remove(this)
    this.#resolve(answer)
  }
}
