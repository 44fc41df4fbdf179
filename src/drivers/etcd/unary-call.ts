import { nothing } from '../../base/nothing.js'
import type { GrpcCall } from './call.js'
import type { EtcdChannel } from './channel.js'
import { EtcdError } from './errors.js'

/** How often a call is sent again because its token was refused. */
const MOST_REPEATS = 2

/** One request with one answer. It is in `open` until it is settled. */
export class UnaryCall {
  readonly promise: Promise<Buffer>
  readonly deadlineAt: number
  readonly #path: string
  readonly #message: Buffer
  readonly #open: Set<UnaryCall> | null
  #resolve: (answer: Buffer) => void = nothing
  #reject: (error: EtcdError) => void = nothing
  #call: GrpcCall | null = null
  #pay = nothing
  #repeats = 0

  constructor(path: string, message: Buffer, deadlineAt: number, open: Set<UnaryCall> | null = null) {
    this.#path = path
    this.#message = message
    this.deadlineAt = deadlineAt
    this.#open = open
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    open?.add(this)
  }

  get isSent(): boolean {
    return this.#call !== null
  }

  /** `onAnswer` tells whether the call is settled; otherwise it will be sent again. */
  send(
    connection: EtcdChannel,
    token: string | null,
    onAnswer: (error: EtcdError | null) => boolean = () => true,
  ): void {
    if (this.#call) return
    let answer: Buffer | null = null
    const call = connection.open(this.#path, token, {
      onMessage: (message) => {
        answer = message
      },
      onEnd: (error) => {
        this.#pay()
        this.#call = null
        if (!onAnswer(error)) return
        if (error) this.fail(error)
        else if (answer) this.#settle(answer)
        else this.fail(new EtcdError('INTERNAL', 'etcd answered without a message', { maybeDone: true }))
      },
    })
    // It is sent on the next connection.
    if (!call) return
    connection.owe()
    this.#pay = once(() => connection.paid())
    this.#call = call
    call.send(this.#message, true)
  }

  /** Whether the call, which was refused for its token, may be sent once more. */
  mayRepeat(): boolean {
    return this.#repeats++ < MOST_REPEATS
  }

  fail(error: EtcdError): void {
    this.#open?.delete(this)
    this.#pay()
    this.#call?.cancel()
    this.#call = null
    this.#reject(error)
  }

  #settle(answer: Buffer): void {
    this.#open?.delete(this)
    this.#resolve(answer)
  }
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    run()
  }
}
