import type { Cancel, Env } from '../../base/env.js'
import type { ClientContext } from '../../contract/store.js'
import {
  loadDriver,
  type SqliteDatabase,
  type SqliteDriver,
  type SqliteDriverName,
} from '../../drivers/sqlite.js'
import { isBusy } from '../../drivers/sqlite-failures.js'
import { type BatchCallOptions, Batches } from './batches.js'
import { deliver, SqliteClients, type SqliteStoreClient, socketOf } from './clients.js'
import { LockFile } from './lock-file.js'
import type { Message } from './outbox.js'
import { PeerSockets } from './peer-sockets.js'
import { findLapsedLines, forgetClient, refreshWatchers, sweep } from './sweep.js'

const MAINTENANCE_INTERVAL_MS = 60_000
/** How many sockets one sweep probes. */
const MOST_SOCKETS = 100

export interface SqliteBackendOptions {
  /** Absolute. */
  readonly path: string
  readonly driver: SqliteDriverName | undefined
  readonly env: Env
  readonly bootId: string | null
}

/** What the connections of one store value share: the file, its batches, clients and sockets. */
export class SqliteBackend {
  readonly #options: SqliteBackendOptions
  readonly #clients: SqliteClients
  readonly #sockets: PeerSockets
  readonly #batches: Batches
  #driver: SqliteDriver | undefined
  /** A handle whose file was busy when it was to be prepared. */
  #database: SqliteDatabase | undefined
  #connections = 0
  #stopMaintenance: Cancel | undefined

  constructor(options: SqliteBackendOptions) {
    this.#options = options
    // Short, because a socket's path may not be long. 64 random bits make it unique.
    const socket = options.env.id().replaceAll('-', '').slice(-16)
    this.#clients = new SqliteClients(socket)
    this.#sockets = new PeerSockets(options.path, socket, (message) => this.#receive(message))
    this.#batches = new Batches({
      path: options.path,
      env: options.env,
      open: () => this.#open(),
      tell: (messages) => this.#tell(messages),
      replaced: () => this.#reportGap(this.#clients.all()),
    })
  }

  connect(context: ClientContext): SqliteStoreClient {
    this.#connections += 1
    return this.#clients.add(context)
  }

  submit<T>(run: (file: LockFile) => T, options?: BatchCallOptions): Promise<T> {
    return this.#batches.submit(run, options)
  }

  /** From now on other processes can tell our clients. */
  listen(): void {
    this.#sockets.listen()
  }

  /** Whether other processes can reach our clients. */
  get receivesPushes(): boolean {
    return this.#sockets.isListening
  }

  /** Waits for the calls under way. After the last client, closes the file. */
  async disconnect(client: SqliteStoreClient): Promise<void> {
    this.#clients.remove(client)
    await this.#batches.idle()
    if (client.watched.size > 0) await this.#inBackground((file) => forgetClient(file, client))
    this.#connections -= 1
    await this.#batches.idle()
    if (this.#connections > 0) return
    this.#stopMaintenance?.()
    this.#sockets.close()
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
      this.#scheduleMaintenance()
      return file
    } catch (error) {
      // The next attempt uses it again: libsql frees a closed handle only when it is garbage
      // collected.
      if (!isBusy(error)) this.#dropDatabase()
      throw error
    }
  }

  #dropDatabase(): void {
    this.#database?.close()
    this.#database = undefined
  }

  /**
   * Own clients are told at once; for others, the promise resolves when the messages are written.
   */
  #tell(messages: readonly Message[]): Promise<unknown> | undefined {
    const remote = new Map<string, Message[]>()
    for (const message of messages) {
      const socket = socketOf(message.client)
      if (socket === this.#sockets.name) this.#receive(message)
      else remote.set(socket, [...(remote.get(socket) ?? []), message])
    }
    if (remote.size === 0) return undefined
    return Promise.all([...remote].map(([socket, theirs]) => this.#sockets.send(socket, theirs)))
  }

  #receive({ space, client, news }: Message): void {
    const local = this.#clients.find(space, client)
    if (local) deliver(local, news)
  }

  /**
   * Short-lived processes sweep, too. Before their first call, not after it: a process that is
   * stopped inside a transaction blocks all others, and that is most likely once it holds a lock.
   */
  #sweepAtOpening(file: LockFile): void {
    try {
      void this.#tell(file.write(() => sweep(file, findLapsedLines(file))))
    } catch {
      // The file is busy: the next process that opens it sweeps. Any other failure shows in the
      // first call.
    }
    void this.#sockets.sweep(MOST_SOCKETS)
  }

  #scheduleMaintenance(): void {
    this.#stopMaintenance?.()
    const run = (): void => void this.#maintain()
    this.#stopMaintenance = this.#options.env.timer(MAINTENANCE_INTERVAL_MS, run, { keepAlive: false })
  }

  async #maintain(): Promise<void> {
    this.#scheduleMaintenance()
    this.#sockets.check()
    this.#sockets.closeIdle()
    await this.#inBackground((file) => refreshWatchers(file, this.#clients.all()))
    while (await this.#sweepSome()) {}
    await this.#sockets.sweep(MOST_SOCKETS)
  }

  /** Resolves with whether more may be left. */
  async #sweepSome(): Promise<boolean> {
    // Searched outside the write transaction, so that other processes need not wait for the search.
    const lapsed = await this.#inBackground(findLapsedLines, { isRead: true })
    return (await this.#inBackground((file) => sweep(file, lapsed ?? []))) ?? false
  }

  /**
   * For work that no caller waits for: it does not open the file, keep the process alive, or fail.
   */
  async #inBackground<T>(run: (file: LockFile) => T, options: BatchCallOptions = {}): Promise<T | undefined> {
    if (!this.#batches.isOpen) return undefined
    return await this.#batches.submit(run, { ...options, isBackground: true }).catch(() => undefined)
  }

  #reportGap(clients: Iterable<SqliteStoreClient>): void {
    for (const client of [...clients]) {
      client.watched.clear()
      deliver(client, { type: 'gap' })
    }
  }
}
