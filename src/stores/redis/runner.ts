import type { Env } from '../../base/env.js'
import type { Driver, Replicas } from './driver.js'
import { closed } from './failures.js'
import { batchScript } from './lua/batch.js'
import type { Script, Scripts } from './lua/script.js'
import { Silence } from './silence.js'

/** A failure to open is told again for so long. */
const PAUSE_MS = 20
/** The Sentinels are asked again at most this often: with its replica gone, the right master fails WAIT as well. */
const SUSPECT_EVERY_MS = 1000

/** How long a close waits for a connection that is being opened. */
const OPEN_BEFORE_CLOSE_MS = 1000

export interface RunnerOptions {
  readonly env: Env
  openDriver(): Promise<Driver>
  readonly retentionMs: number
  /** How many replicas must have a grant; null: none, so everything goes over one connection. */
  readonly replicas: Replicas | null
  /** What to say where no connection is made, and there is no answer either; null: nothing. */
  readonly hint: string | null
  /** Whether Sentinels say which server is the master. */
  readonly isSentinel: boolean
  /** The server is left because it need not be the master any more. */
  onSuspicion(): void
  /** null: the server's clock, as it must be. A simulation gives its own. */
  readonly clock: Env | null
}

/** Runs scripts on a Redis that is opened at the first call. */
export class Runner {
  readonly #options: RunnerOptions
  #isWanted = false
  #opening: Promise<Driver> | undefined
  driver: Driver | undefined
  #silence: Silence | undefined
  #leave: () => void = () => {}
  #suspectFrom = 0
  readonly #retention: string

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#retention = String(options.retentionMs)
  }

  /** Somebody uses it from now on, until it is closed: a call that comes later must not open anything that nobody would close. */
  use(): void {
    this.#isWanted = true
  }

  /** Why no answer comes, where that is known. */
  get trouble(): string | null {
    return this.#opening && !this.driver ? this.#options.hint : null
  }

  /** A failed attempt is forgotten, and so is a connection that is gone: the next call tries anew. */
  open(): Promise<Driver> {
    if (!this.#isWanted) return Promise.reject(closed())
    if (this.#opening) return this.#opening
    const opening = this.#openOnce()
    this.#opening = opening
    opening.then(
      (driver) => {
        if (this.#opening !== opening) return
        this.driver = driver
        if (driver.ended) this.#watch(driver, opening, driver.ended)
      },
      // However many call while the server is gone, it is not tried without a pause.
      () => void this.#options.env.timer(PAUSE_MS, () => this.#forget(opening), { keepAlive: false }),
    )
    return opening
  }

  /** A connection of our own is left when it ends, and when it is silent. One of the user's is the user's to look after. */
  #watch(driver: Driver, opening: Promise<Driver>, ended: Promise<void>): void {
    const leave = (): void => {
      this.#forget(opening)
      void driver.close()
    }
    this.#leave = leave
    this.#silence = new Silence(this.#options.env, leave)
    void ended.then(leave)
  }

  /**
   * The server has too few replicas, or takes no writes: it may be an old master that came back, which its Sentinels take care of seconds
   * later. So it is left, and the next call asks them. Only where we have opened the connection.
   */
  suspect(): void {
    const { env, isSentinel, onSuspicion } = this.#options
    const now = env.now()
    if (!isSentinel || !this.driver?.ended || now < this.#suspectFrom) return
    this.#suspectFrom = now + SUSPECT_EVERY_MS
    this.#leave()
    onSuspicion()
  }

  #forget(opening: Promise<Driver>): void {
    if (this.#opening !== opening) return
    this.#opening = undefined
    this.driver = undefined
    this.#stopWatching()
  }

  #stopWatching(): void {
    this.#silence?.stop()
    this.#silence = undefined
  }

  async #openOnce(): Promise<Driver> {
    const driver = await this.#options.openDriver()
    // Claims that find the script missing are sent again, behind those that came after them: better that it is there from the start.
    const learnt = driver.teach(this.#scriptOf(batchScript))
    // On the one connection of a single server it goes ahead of them, so there is nothing to wait for.
    if (driver.isCluster || this.#options.replicas) await learnt
    return driver
  }

  run(scripts: Scripts, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { driver } = this
    return driver
      ? this.#runOn(driver, scripts, keys, args)
      : this.open().then((opened) => this.#runOn(opened, scripts, keys, args))
  }

  #runOn(driver: Driver, scripts: Scripts, keys: readonly string[], args: readonly string[]) {
    const reply = driver.run(this.#scriptOf(scripts), keys, this.#withConstants(args))
    this.#silence?.watch(reply)
    return reply
  }

  async runDurably(scripts: Scripts, keys: readonly string[], args: readonly string[], wanted: Replicas) {
    const driver = this.driver ?? (await this.open())
    return driver.runDurably(this.#scriptOf(scripts), keys, this.#withConstants(args), wanted)
  }

  async close(): Promise<void> {
    this.#isWanted = false
    const opening = this.#opening
    this.#opening = undefined
    this.driver = undefined
    this.#stopWatching()
    const closing = opening?.then((driver) => driver.close()).catch(() => {})
    if (!closing) return
    // A Cluster without one of its masters takes long to open: then it is closed when it is open.
    await new Promise<void>((resolve) => {
      const cancel = this.#options.env.timer(OPEN_BEFORE_CLOSE_MS, resolve, { keepAlive: true })
      void closing.then(resolve).then(cancel)
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
