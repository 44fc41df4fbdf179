import type { Cancel, Env } from '../../base/env.js'
import type { ClientContext } from '../../contract/store.js'
import { type Database, type Driver, type DriverName, loadDriver } from '../../drivers/sqlite.js'
import { isBusy } from '../../drivers/sqlite-failures.js'
import { Batches, type CallOptions } from './batches.js'
import { Clients, deliver, type LocalClient, wireOf } from './clients.js'
import { LockFile } from './lock-file.js'
import type { Message } from './outbox.js'
import { beatWatchers, findLapsedLines, forgetClient, sweep } from './sweep.js'
import { Wires } from './wires.js'

const KEEP_HOUSE_EVERY_MS = 60_000
/** How many ends of wires one sweep looks at. */
const MOST_WIRES = 100

export interface SqliteBackendOptions {
  /** Absolute. */
  readonly path: string
  readonly driver: DriverName | undefined
  readonly env: Env
  readonly bootId: string | null
}

/** What the connections of one store value share: the opened file, its batches, the clients and the wires to other processes. */
export class SqliteBackend {
  readonly #options: SqliteBackendOptions
  readonly #clients: Clients
  readonly #wires: Wires
  readonly #batches: Batches
  #driver: Driver | undefined
  /** A database that is being opened: it was not our turn yet. */
  #database: Database | undefined
  #connections = 0
  #stopKeepingHouse: Cancel | undefined

  constructor(options: SqliteBackendOptions) {
    this.#options = options
    // Short, so that the socket's path is: unlike any other's as long as there are fewer than billions of them.
    const wire = options.env.id().replaceAll('-', '').slice(-16)
    this.#clients = new Clients(wire)
    this.#wires = new Wires(options.path, wire, (message) => this.#receive(message))
    this.#batches = new Batches({
      path: options.path,
      env: options.env,
      open: () => this.#open(),
      tell: (messages) => this.#tell(messages),
      replaced: () => this.#askEverything(this.#clients.all()),
    })
  }

  connect(context: ClientContext): LocalClient {
    this.#connections += 1
    return this.#clients.add(context)
  }

  submit<T>(run: (file: LockFile) => T, options?: CallOptions): Promise<T> {
    return this.#batches.submit(run, options)
  }

  /** From now on other processes can tell our clients. */
  listen(): void {
    this.#wires.listen()
  }

  /** Whether other processes can reach our clients. */
  get receivesPushes(): boolean {
    return this.#wires.isListening
  }

  /** Waits for the calls that were made, and closes the file behind the last client. */
  async leave(client: LocalClient): Promise<void> {
    this.#clients.remove(client)
    await this.#batches.settled()
    if (client.watched.size > 0) await this.#inBackground((file) => forgetClient(file, client))
    this.#connections -= 1
    await this.#batches.settled()
    if (this.#connections > 0) return
    this.#stopKeepingHouse?.()
    this.#wires.close()
    this.#batches.closeFile()
    this.#dropDatabase()
  }

  async #open(): Promise<LockFile> {
    this.#driver ??= await loadDriver(this.#options.driver)
    this.#database ??= this.#driver.open(this.#options.path)
    try {
      const file = new LockFile(this.#database, {
        ...this.#options,
        receivesPushes: () => this.receivesPushes,
      })
      this.#database = undefined
      this.#sweepAtOpening(file)
      this.#keepHouseIn(KEEP_HOUSE_EVERY_MS)
      return file
    } catch (error) {
      // Kept for the next attempt: libsql gives a closed handle back only when it is garbage, and there may be many attempts.
      if (!isBusy(error)) this.#dropDatabase()
      throw error
    }
  }

  #dropDatabase(): void {
    this.#database?.close()
    this.#database = undefined
  }

  /** Own clients at once; for others, resolves when the messages are on their way. */
  #tell(messages: readonly Message[]): Promise<unknown> | undefined {
    const remote = new Map<string, Message[]>()
    for (const message of messages) {
      const wire = wireOf(message.client)
      if (wire === this.#wires.name) this.#receive(message)
      else remote.set(wire, [...(remote.get(wire) ?? []), message])
    }
    if (remote.size === 0) return undefined
    return Promise.all([...remote].map(([wire, theirs]) => this.#wires.send(wire, theirs)))
  }

  #receive({ space, client, news }: Message): void {
    const local = this.#clients.find(space, client)
    if (local) deliver(local, news)
  }

  /**
   * Short-lived processes have to sweep, too. Before their first call rather than after it: a process that is stopped while it
   * has the file stops everybody, and once it holds a lock that is likely to be tried.
   */
  #sweepAtOpening(file: LockFile): void {
    try {
      void this.#tell(file.change(() => sweep(file, findLapsedLines(file))))
    } catch {
      // Somebody else has the file; the next one who opens it will sweep. What is really wrong with it, the first call will say.
    }
    void this.#wires.sweep(MOST_WIRES)
  }

  #keepHouseIn(ms: number): void {
    this.#stopKeepingHouse?.()
    this.#stopKeepingHouse = this.#options.env.timer(ms, () => void this.#keepHouse(), { keepAlive: false })
  }

  async #keepHouse(): Promise<void> {
    this.#keepHouseIn(KEEP_HOUSE_EVERY_MS)
    this.#wires.check()
    // Searched for outside the transaction that writes, so that nobody waits for the search.
    const lapsed = await this.#inBackground(findLapsedLines, { isLook: true })
    await this.#inBackground((file) => {
      beatWatchers(file, this.#clients.all())
      sweep(file, lapsed ?? [])
    })
    await this.#wires.sweep(MOST_WIRES)
  }

  /** For what nobody waits for: it does not open the file, keep the process alive, or fail. */
  async #inBackground<T>(run: (file: LockFile) => T, options: CallOptions = {}): Promise<T | undefined> {
    if (!this.#batches.isOpen) return undefined
    return await this.#batches.submit(run, { ...options, isBackground: true }).catch(() => undefined)
  }

  /** What these clients were to be told may be lost: they should look for themselves. */
  #askEverything(clients: Iterable<LocalClient>): void {
    for (const client of [...clients]) {
      client.watched.clear()
      deliver(client, { type: 'gap' })
    }
  }
}
