import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import type { Master, RedisDriver, Replicas } from './driver.js'
import { closed, explain, isReplica } from './failures.js'
import { batchScript } from './lua/batch.js'
import type { Script, Scripts } from './lua/script.js'
import { Silence } from './silence.js'

/** After a failure to open, calls fail with the same error for this long. */
const REOPEN_PAUSE_MS = 20
/**
 * The master is looked for again at most this often: the right one fails WAIT as well while its
 * replica is down.
 */
const SUSPECT_INTERVAL_MS = 1000

/**
 * How long the first calls wait for their script on every master. A master that stands still must
 * not keep them from the others, and a missing script only costs a call.
 */
const LOAD_WITHIN_MS = 2000
/** How long a close waits for a connection that is being opened. */
const OPEN_BEFORE_CLOSE_MS = 1000

export interface RedisRunnerOptions {
  readonly env: Env
  openDriver(): Promise<RedisDriver>
  readonly retentionMs: number
  /** How many replicas must have a grant; null: none, so everything goes over one connection. */
  readonly replicas: Replicas | null
  /** What to say while a connection attempt gets neither an answer nor a refusal; null: nothing. */
  readonly hint: string | null
  /** Whether Sentinels name the master. */
  readonly isSentinel: boolean
  /** The connection was closed because its server may no longer be the master. */
  onSuspicion(): void
  /** null: the server's clock. Only simulations give their own. */
  readonly clock: Env | null
}

/** Runs scripts over a connection that the first call opens. */
export class RedisRunner {
  readonly #options: RedisRunnerOptions
  #isInUse = false
  #opening: Promise<RedisDriver> | undefined
  driver: RedisDriver | undefined
  #silence: Silence | undefined
  #abandon: () => void = () => {}
  #suspectFrom = 0
  /** Counts the drivers that were opened or given up, and what each has counted. */
  #links = 0
  /** What the present driver had counted when it was opened. */
  #linksBefore = 0
  #hasOpened = false
  readonly #retention: string

  constructor(options: RedisRunnerOptions) {
    this.#options = options
    this.#retention = String(options.retentionMs)
  }

  /** Allows calls until `close`: a later call must not open a connection that nobody closes. */
  use(): void {
    this.#isInUse = true
  }

  /** Why no answer comes, where that is known. */
  get trouble(): string | null {
    return this.#opening && !this.driver ? this.#options.hint : null
  }

  /** Stays the same while the same run of the server answers. Never comes again. */
  get link(): number {
    return this.#links + (this.driver ? this.driver.links - this.#linksBefore : 0)
  }

  /** Whether the next answers may come from another server, because the present one has failed. */
  get mayFailOver(): boolean {
    return this.#options.isSentinel || this.driver?.mayFailOver === true
  }

  /** A failed attempt and a lost connection are forgotten: the next call opens again. */
  open(): Promise<RedisDriver> {
    if (!this.#isInUse) return Promise.reject(closed())
    if (this.#opening) return this.#opening
    const opening = this.#openOnce()
    this.#opening = opening
    opening.then(
      (driver) => {
        if (this.#opening !== opening) return
        this.#linkTo(driver)
        if (driver.ended) this.#watch(driver, opening, driver.ended)
      },
      // A server that is down is not tried without a pause, however many calls there are.
      () => void this.#options.env.timer(REOPEN_PAUSE_MS, () => this.#forget(opening), { keepAlive: false }),
    )
    return opening
  }

  /**
   * A connection of our own is replaced when it is lost or silent. The user's client is left to the
   * user.
   */
  #watch(driver: RedisDriver, opening: Promise<RedisDriver>, ended: Promise<void>): void {
    const abandon = (): void => {
      this.#forget(opening)
      void driver.close()
    }
    this.#abandon = abandon
    const { env, replicas } = this.#options
    this.#silence = new Silence(env, abandon, replicas?.timeoutMs ?? 0)
    void ended.then(abandon)
  }

  /**
   * Too few replicas have a grant. With Sentinels the server may be an old master that came back,
   * which they demote seconds later. With one address a new connection most likely leads to the
   * same server, and would cost the calls under way.
   */
  missReplicas(): void {
    if (this.#options.isSentinel) this.#suspect()
  }

  /**
   * The server may be an old master, whose address or Sentinels may name the new one by now. So the
   * connection is closed, if it is ours, and the next call finds the master anew. The client of a
   * Cluster does so by itself.
   */
  #suspect(): void {
    const { env, onSuspicion } = this.#options
    const now = env.now()
    const { driver } = this
    if (!driver?.ended || driver.isCluster || now < this.#suspectFrom) return
    this.#suspectFrom = now + SUSPECT_INTERVAL_MS
    this.#abandon()
    onSuspicion()
  }

  /** Explains why a call failed. A replica that answered is left for the master. */
  failureOf(error: unknown): HoldfastError {
    if (isReplica(error)) this.#suspect()
    return explain(error)
  }

  #forget(opening: Promise<RedisDriver>): void {
    if (this.#opening !== opening) return
    this.#opening = undefined
    this.#unlink()
    this.#stopWatching()
  }

  #linkTo(driver: RedisDriver): void {
    // The first connection changes nothing: no answer came over another one.
    if (this.#hasOpened) this.#links++
    this.#hasOpened = true
    this.#linksBefore = driver.links
    this.driver = driver
  }

  #unlink(): void {
    this.#links = this.link + 1
    this.driver = undefined
  }

  #stopWatching(): void {
    this.#silence?.stop()
    this.#silence = undefined
  }

  async #openOnce(): Promise<RedisDriver> {
    const driver = await this.#options.openDriver()
    // A claim that finds the script missing is sent again, behind later ones. So the script is
    // loaded before the first claim.
    const loaded = driver.load(this.#scriptOf(batchScript))
    // On the one connection of a single server it is ahead of the claims anyway.
    if (driver.isCluster || this.#options.replicas) await this.#atMost(LOAD_WITHIN_MS, loaded, false)
    return driver
  }

  run(scripts: Scripts, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { driver } = this
    return driver
      ? this.#runOn(driver, scripts, keys, args)
      : this.open().then((opened) => this.#runOn(opened, scripts, keys, args))
  }

  #runOn(driver: RedisDriver, scripts: Scripts, keys: readonly string[], args: readonly string[]) {
    const reply = driver.run(this.#scriptOf(scripts), keys, this.#withConstants(args))
    this.#silence?.watch(reply)
    return reply
  }

  async runDurably(scripts: Scripts, keys: readonly string[], args: readonly string[], wanted: Replicas) {
    const driver = this.driver ?? (await this.open())
    const answer = driver.runDurably(this.#scriptOf(scripts), keys, this.#withConstants(args), wanted)
    this.#silence?.watch(answer)
    return answer
  }

  /** Asks every master, over the connection for commands. */
  async askMasters<T>(ask: (master: Master) => Promise<T>): Promise<T[]> {
    const driver = this.driver ?? (await this.open())
    const answers = driver.masters().then((masters) => Promise.all(masters.map(ask)))
    this.#silence?.watch(answers)
    return answers
  }

  async close(): Promise<void> {
    this.#isInUse = false
    const opening = this.#opening
    this.#opening = undefined
    this.#unlink()
    this.#stopWatching()
    const closing = opening?.then((driver) => driver.close()).catch(() => {})
    if (!closing) return
    // A Cluster that lacks a master takes long to open: then it is closed in the background.
    await this.#atMost(OPEN_BEFORE_CLOSE_MS, closing, true)
  }

  /** Resolves with the work, which does not fail, or after this time. */
  #atMost(ms: number, work: Promise<void>, keepAlive: boolean): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.env.timer(ms, resolve, { keepAlive })
      void work.then(resolve).then(cancel)
    })
  }

  #scriptOf(scripts: Scripts): Script {
    return this.#options.clock ? scripts.byCaller : scripts.byServer
  }

  #withConstants(args: readonly string[]): string[] {
    const { clock } = this.#options
    const complete = [this.#retention, ...args]
    if (clock) complete.push(String(Math.round(clock.wallMs() * 1000)))
    return complete
  }
}
