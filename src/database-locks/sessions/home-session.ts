import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { ANSWER_MS, noConnection } from '../limits.js'
import type { SessionBackend } from './backend.js'
import type { DatabaseSession, SessionConnection } from './session.js'

type OnSessionEnd<C extends SessionConnection> = (session: DatabaseSession<C>, reason: HoldfastError) => void

/**
 * The session that takes and holds every lock that is free when it is asked for. It never waits
 * inside the server, so it can always answer.
 */
export class HomeSession<C extends SessionConnection> {
  readonly #backend: SessionBackend<C>
  readonly #env: Env
  readonly #onEnd: OnSessionEnd<C>
  #opening: Promise<DatabaseSession<C>> | undefined
  #openingSince = 0
  #isOpen = false
  #checks = 0

  constructor(backend: SessionBackend<C>, env: Env, onEnd: OnSessionEnd<C>) {
    this.#backend = backend
    this.#env = env
    this.#onEnd = onEnd
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get isBeingChecked(): boolean {
    return this.#checks > 0
  }

  open(): Promise<DatabaseSession<C>> {
    if (this.#opening) return this.#opening
    const opening = this.#backend.open((reason) => {
      this.#forget(opening)
      void opening.then((session) => this.#onEnd(session, reason))
    })
    this.#opening = opening
    this.#openingSince = this.#env.now()
    const onOpen = (): void => {
      if (this.#opening === opening) this.#isOpen = true
    }
    opening.then(onOpen, () => this.#forget(opening))
    return opening
  }

  /** Returns the connection to the pool, also one that is still being opened. */
  close(): void {
    const opening = this.#opening
    this.#forget(opening)
    opening?.then((session) => session.close()).catch(nothing)
  }

  /** Resolves with null if the server answers in time, otherwise with the reason. */
  check(): Promise<HoldfastError | null> {
    this.#checks++
    const answer = this.open().then((session) => session.ping())
    const waitedMs = this.#isOpen ? 0 : this.#env.now() - this.#openingSince
    return new Promise<unknown>((resolve, reject) => {
      const onSilence = (): void => reject(this.#silence(waitedMs))
      const cancel = this.#env.timer(Math.max(0, ANSWER_MS - waitedMs), onSilence, { keepAlive: true })
      answer.finally(cancel).then(resolve, reject)
    })
      .then(
        () => null,
        (error) => this.#backend.explain(error),
      )
      .finally(() => this.#checks--)
  }

  #silence(waitedMs: number): Error {
    const withinMs = Math.max(waitedMs, ANSWER_MS)
    return this.#isOpen
      ? new Error(`no answer within ${ANSWER_MS} ms`)
      : noConnection(this.#backend.store, withinMs)
  }

  #forget(opening: Promise<DatabaseSession<C>> | undefined): void {
    if (this.#opening !== opening) return
    this.#opening = undefined
    this.#isOpen = false
  }
}
