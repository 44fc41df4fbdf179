import { backoffMs } from '../base/backoff.js'
import { deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { HoldfastError, isRetryable, withOwnStack } from '../base/errors.js'
import type { Connection, StateOutcome, StateValue } from '../contract/store.js'
import { type Calls, HEALTHY_MS } from './calls.js'
import { type Awaited, aborted, type Limits, waitTimeout, watchLimits } from './limits.js'
import { StateWatch } from './state-watch.js'

const FIRST_RETRY_MS = 1
const LONGEST_RETRY_MS = 50

export interface StatesContext {
  readonly env: Env
  readonly calls: Calls
  readonly connection: Connection
}

/** What an update makes of a value. */
export interface Update {
  /** null deletes. */
  readonly value: string | null
  /** How long it is kept after this write; null: until it is deleted. */
  readonly retentionMs: number | null
}

type Change = (value: string | null) => Update | null | Promise<Update | null>

/** The small versioned values beside the lines, with the loops that a store does not have: compare-and-set until it fits, wait until it is so. */
export class States {
  readonly #context: StatesContext
  readonly #watches = new Map<string, StateWatch>()
  /** By key: the last update that was asked for, with the value after it; undefined where nobody knows. */
  readonly #updates = new Map<string, Promise<StateValue | null | undefined>>()
  /** By key: the question whether the store answers at all. Callers whose waits end together share it. */
  readonly #probes = new Map<string, Promise<unknown>>()
  #noWaits: HoldfastError | null = null
  #closed: HoldfastError | null = null

  constructor(context: StatesContext) {
    this.#context = context
  }

  async read(key: string): Promise<string | null> {
    if (this.#closed) throw this.#closed
    return (await this.#read(key, false))?.value ?? null
  }

  /**
   * Changes a value by a function of it, however many others do the same; gives the value after it. Where the function gives null,
   * nothing is written. It is called again when another came between, and must recognise its own change if that may happen only
   * once: the answer to a write can get lost.
   */
  async update(key: string, change: Change): Promise<string | null> {
    if (this.#closed) throw this.#closed
    const deadline = this.#deadline()
    // One after the other within this client: they would only get into each other's way, and the next one need not read.
    const last = this.#updates.get(key) ?? Promise.resolve(undefined)
    const mine = last.then((known) => this.#update(key, change, deadline, known))
    const tail = mine.catch(() => undefined)
    this.#updates.set(key, tail)
    try {
      return (await mine)?.value ?? null
    } finally {
      if (this.#updates.get(key) === tail) this.#updates.delete(key)
    }
  }

  async #update(
    key: string,
    change: Change,
    deadline: number,
    known: StateValue | null | undefined,
  ): Promise<StateValue | null> {
    const { env, calls } = this.#context
    let before = known === undefined ? await this.#read(key, false, deadline) : known
    // That nothing is to be done is believed of what is there now only, not of what was there after an earlier update.
    let isFresh = known === undefined
    let until = deadline
    for (let attempt = 1; ; attempt++) {
      const changedFrom = env.now()
      const update = await change(before?.value ?? null)
      if (update === null && isFresh) return before
      // What the change itself asks of the store has a deadline of its own.
      until += env.now() - changedFrom
      const outcome = update && (await this.#write(key, before, update, until))
      if (outcome?.written) return outcome.current
      if (update) await calls.pause(backoffMs(attempt, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS))
      before = outcome ? outcome.current : await this.#read(key, false, until)
      isFresh = true
    }
  }

  /** Waits until the value is as wanted, and gives it. */
  async until(
    key: string,
    isWanted: (value: string | null) => boolean,
    limits: Limits,
    what: Awaited,
  ): Promise<string | null> {
    const { env } = this.#context
    if (this.#noWaits) throw this.#noWaits
    if (limits.signal?.aborted) throw aborted(what.name, limits.signal)
    const outcome = deferred<string | null>()
    const timeout = (): HoldfastError => waitTimeout(what, limits.waitMs)
    const unwatch = watchLimits(env, limits, what.name, (error) => {
      if (error.code !== 'ACQUIRE_TIMEOUT') return outcome.reject(error)
      void this.endOfWait(key, timeout()).then(outcome.reject)
    })
    const leave = this.#watch(key).add({
      see(value) {
        try {
          if (isWanted(value)) outcome.resolve(value)
          else if (limits.waitMs === 0) outcome.reject(timeout())
        } catch (error) {
          outcome.reject(error)
        }
      },
      fail: outcome.reject,
    })
    try {
      return await outcome.promise
    } catch (error) {
      throw withOwnStack(error)
    } finally {
      unwatch()
      leave()
    }
  }

  /** The error for a caller whose wait is over: a store that does not answer must not be read as "not yet". Never rejects. */
  async endOfWait(key: string, timeout: HoldfastError): Promise<HoldfastError> {
    const failure = await this.#probe(key)
    return failure === null ? timeout : this.#context.calls.endedBy(failure, timeout.resource)
  }

  /** Asks for something small. The failure; null: the store answers, if only with a refusal. Never rejects. */
  #probe(key: string): Promise<unknown> {
    const known = this.#probes.get(key)
    if (known) return known
    const { calls, connection } = this.#context
    const probe = calls
      .within(Math.min(HEALTHY_MS, calls.storeTimeoutMs), () => connection.read(key, false))
      .then(
        () => null,
        (error) => (error instanceof HoldfastError && error.code !== 'STORE_UNAVAILABLE' ? null : error),
      )
      .finally(() => this.#probes.delete(key))
    this.#probes.set(key, probe)
    return probe
  }

  /** A push: this value has changed. */
  changed(key: string): void {
    this.#watches.get(key)?.look()
  }

  /** Any of them may have changed. */
  changedAny(): void {
    for (const watch of this.#watches.values()) watch.look()
  }

  /** Sends everybody away who waits, and everybody who comes to wait. Running work may still read and change values. */
  endWaits(reason: HoldfastError): void {
    this.#noWaits = reason
    for (const watch of this.#watches.values()) watch.fail(reason)
  }

  close(reason: HoldfastError): void {
    this.#closed = reason
  }

  #watch(key: string): StateWatch {
    const known = this.#watches.get(key)
    if (known) return known
    const watch = new StateWatch({
      env: this.#context.env,
      read: async (watch) => (await this.#read(key, watch))?.value ?? null,
      onIdle: () => {
        this.#watches.delete(key)
        this.#context.connection.unwatch?.(key)
      },
    })
    this.#watches.set(key, watch)
    return watch
  }

  #read(key: string, watch: boolean, deadline = this.#deadline()): Promise<StateValue | null> {
    const { calls, connection } = this.#context
    return calls.repeated(deadline, () => connection.read(key, watch))
  }

  #deadline(): number {
    return this.#context.env.now() + this.#context.calls.storeTimeoutMs
  }

  /** null: nobody knows whether it was written. */
  async #write(
    key: string,
    before: StateValue | null,
    update: Update,
    deadline: number,
  ): Promise<StateOutcome | null> {
    const { env, calls, connection } = this.#context
    const change = { key, expect: before?.version ?? null, ...update }
    try {
      return await calls.within(calls.oneCallUntil(deadline), () => connection.write(change))
    } catch (error) {
      const since = deadline - calls.storeTimeoutMs
      if (!isRetryable(error) || env.now() >= deadline) throw calls.unavailable(error, { since })
      return null
    }
  }
}
