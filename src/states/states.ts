import { backoffMs } from '../base/backoff.js'
import { deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { HoldfastError, isRetryable, withOwnStack } from '../base/errors.js'
import { type Calls, HEALTHY_MS } from '../calls/calls.js'
import { type Awaited, aborted, type Limits, waitTimeout, watchLimits } from '../calls/limits.js'
import type { Connection, StateOutcome, StateValue } from '../contract/store.js'
import { StateWatch } from './state-watch.js'

const FIRST_RETRY_MS = 1
const LONGEST_RETRY_MS = 50

export interface StatesContext {
  readonly env: Env
  readonly calls: Calls
  readonly connection: Connection
}

/** The new value of an update. */
export interface Update {
  /** null deletes. */
  readonly value: string | null
  /** How long it is kept after this write; null: until it is deleted. */
  readonly retentionMs: number | null
}

/** What an update leaves for the next one of its key. */
interface Left {
  /** The value; undefined: unknown. */
  readonly known: StateValue | null | undefined
  /** Whether the store has just answered. */
  readonly isAnswered: boolean
}

const UNKNOWN: Left = { known: undefined, isAnswered: false }

type Change = (value: string | null) => Update | null | Promise<Update | null>

/** Small versioned values beside the lines: updates by compare-and-set, and waits for a value. */
export class States {
  readonly #context: StatesContext
  readonly #watches = new Map<string, StateWatch>()
  /** By key: the last requested update. */
  readonly #updates = new Map<string, Promise<Left>>()
  /** By key: the check whether the store answers. Callers whose waits end together share it. */
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
   * Changes a value, and returns the new one. If `change` returns null, nothing is written. It is
   * called again after a conflict or a lost answer, and must recognise its own change.
   */
  async update(key: string, change: Change): Promise<string | null> {
    if (this.#closed) throw this.#closed
    const deadline = this.#deadline()
    // One at a time within this client: no conflicts, and the next update need not read.
    const last = this.#updates.get(key) ?? Promise.resolve(UNKNOWN)
    // A store that answered the one before was busy, not silent. Behind a failure the time goes on,
    // so that all fail soon when the store is down.
    const mine = last.then(({ known, isAnswered }) =>
      this.#update(key, change, isAnswered ? this.#deadline() : deadline, known),
    )
    const tail = mine.then(
      (known) => ({ known, isAnswered: true }),
      (error) => ({ known: undefined, isAnswered: !isUnavailable(error) }),
    )
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
    // Trust "nothing to change" only for a fresh value, not for one left by an earlier update.
    let isFresh = known === undefined
    let until = deadline
    for (let attempt = 1; ; attempt++) {
      const changedFrom = env.now()
      const update = await change(before?.value ?? null)
      if (update === null && isFresh) return before
      // Calls to the store inside `change` have their own deadline.
      until += env.now() - changedFrom
      const outcome = update && (await this.#write(key, before, update, until))
      if (outcome?.written) return outcome.current
      if (update) await calls.pause(backoffMs(attempt, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS))
      before = outcome ? outcome.current : await this.#read(key, false, until)
      isFresh = true
    }
  }

  /** Waits until the value is as wanted, and returns it. */
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

  /** The error after a wait: a timeout only if the store answers. Never rejects. */
  async endOfWait(key: string, timeout: HoldfastError): Promise<HoldfastError> {
    const failure = await this.#probe(key)
    return failure === null ? timeout : this.#context.calls.endedBy(failure, timeout.resource)
  }

  /** Reads once, for the failure; null: the store answers, even if it refuses. Never rejects. */
  #probe(key: string): Promise<unknown> {
    const known = this.#probes.get(key)
    if (known) return known
    const { calls, connection } = this.#context
    const probe = calls
      .within(Math.min(HEALTHY_MS, calls.storeTimeoutMs), () => connection.read(key, false))
      .then(
        () => null,
        (error) => (error instanceof HoldfastError && !isUnavailable(error) ? null : error),
      )
      .finally(() => this.#probes.delete(key))
    this.#probes.set(key, probe)
    return probe
  }

  changed(key: string): void {
    this.#watches.get(key)?.look()
  }

  changedAny(): void {
    for (const watch of this.#watches.values()) watch.look()
  }

  /** Fails all present and future waiters. Running work may still read and change values. */
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

  /** null: unknown whether it was written. */
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

function isUnavailable(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'STORE_UNAVAILABLE'
}
