import type { Cancel, Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { Members } from './members.js'

/** The timers of one claim: the limit of a phase, and a moment for answers that are under way. */
export class ClaimTimers {
  isGraceOver = false
  readonly #env: Env
  readonly #members: Members
  readonly #onGraceOver: () => void
  #askedAt = 0
  #cancelGrace: Cancel | null = null
  #cancelLimit: Cancel = nothing

  constructor(env: Env, members: Members, onGraceOver: () => void) {
    this.#env = env
    this.#members = members
    this.#onGraceOver = onGraceOver
  }

  /** Members are asked now: the others get a few times as long as a majority takes. */
  asked(): void {
    this.#askedAt = this.#env.now()
  }

  startGrace(): void {
    const onTime = (): void => {
      this.isGraceOver = true
      this.#onGraceOver()
    }
    const graceMs = this.#members.graceMs(this.#askedAt)
    this.#cancelGrace ??= this.#env.timer(graceMs, onTime, { keepAlive: false })
  }

  endGrace(): void {
    this.#cancelGrace?.()
    this.#cancelGrace = null
    this.isGraceOver = false
  }

  /** In place of the last limit. */
  limit(ms: number, run: () => void): void {
    this.#cancelLimit()
    this.#cancelLimit = this.#env.timer(ms, run, { keepAlive: false })
  }

  end(): void {
    this.#cancelLimit()
    this.endGrace()
  }
}
