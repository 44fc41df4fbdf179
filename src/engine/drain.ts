import { deferred } from '../base/deferred.js'
import type { Cancel } from '../base/env.js'
import { nothing } from '../base/nothing.js'
import type { Engine } from './engine.js'
import type { Entry } from './request.js'

/** Gives running work time to finish before its holds are revoked. */
export class Drain {
  readonly #engine: Engine
  readonly #over = deferred<void>()
  /** The holds around the callers of close(): they cannot end before it is done. */
  readonly #own = new Set<Entry>()
  #endsAt = Infinity
  #cancel: Cancel = nothing
  #isOver = false

  constructor(engine: Engine) {
    this.#engine = engine
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get over(): Promise<void> {
    return this.#over.promise
  }

  /** A caller that closes inside its own `run` would wait for itself. Applies at the next look. */
  exclude(own: Iterable<Entry>): void {
    for (const entry of own) this.#own.add(entry)
  }

  /** Ends the drain after `ms` at the latest. Of several calls, the shortest time counts. */
  endWithin(ms: number): void {
    const { env } = this.#engine
    const endsAt = env.now() + ms
    if (this.#isOver) return
    if (endsAt > this.#endsAt) return this.look()
    this.#cancel()
    this.#endsAt = endsAt
    if (ms === 0) return this.#end()
    this.#cancel = env.timer(ms, () => this.#end(), { keepAlive: true })
    this.look()
  }

  /** Ends the drain if no hold is left. */
  look(): void {
    if (this.#isOver) return
    for (const { served } of this.#engine.leases.values())
      if (served.some((request) => request.isHeldBeside(this.#own))) return
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#cancel()
    this.#over.resolve()
  }
}
