import type { Cancel, Env } from '../../base/env.js'
import type { ClientContext, Push } from '../../contract/store.js'
import { Batches, type CallOptions } from './batches.js'
import { Bells } from './bells.js'
import { addressOf, Clients, deliver, type LocalClient } from './clients.js'
import { type Database, type Driver, type DriverName, loadDriver } from './driver.js'
import { isBusy } from './failures.js'
import { LockFile } from './lock-file.js'
import type { Message } from './news.js'
import { beatWatchers, findLapsedLines, forgetClient, sweep } from './sweep.js'

const KEEP_HOUSE_EVERY_MS = 60_000
/** How many bells one sweep looks at. */
const MOST_BELLS = 500

export interface FileUserOptions {
  /** Absolute. */
  readonly path: string
  readonly driver: DriverName | undefined
  readonly env: Env
  readonly bootId: string | null
}

/** What the connections of one store value share: the opened file, its batches, the clients and their bells. */
export class FileUser {
  readonly #options: FileUserOptions
  readonly #clients = new Clients()
  readonly #bells: Bells
  readonly #batches: Batches
  #driver: Driver | undefined
  /** A database that is being opened: it was not our turn yet. */
  #database: Database | undefined
  #connections = 0
  #stopKeepingHouse: Cancel | undefined

  constructor(options: FileUserOptions) {
    this.#options = options
    this.#bells = new Bells(options.path, options.env)
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

  /** From now on the client wants to be woken by other processes. */
  listen(client: LocalClient): void {
    client.hasListened = true
    const { space, id } = client.context
    if (this.#bells.hang(addressOf(space, id), () => this.#readNews(client))) this.#readNews(client)
  }

  /** Waits for the calls that were made, and closes the file behind the last client. */
  async leave(client: LocalClient): Promise<void> {
    const { space, id } = client.context
    this.#clients.remove(client)
    this.#bells.takeDown(addressOf(space, id))
    await this.#batches.settled()
    if (client.hasListened) await this.#inBackground((file) => forgetClient(file, client))
    this.#connections -= 1
    await this.#batches.settled()
    if (this.#connections > 0) return
    this.#stopKeepingHouse?.()
    this.#batches.closeFile()
    this.#dropDatabase()
  }

  async #open(): Promise<LockFile> {
    this.#driver ??= await loadDriver(this.#options.driver)
    this.#database ??= this.#driver.open(this.#options.path)
    try {
      const file = new LockFile(this.#database, { ...this.#options, clients: this.#clients })
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

  #tell(messages: readonly Message[]): void {
    const toRing = new Set<string>()
    for (const { space, client, news } of messages) {
      const local = this.#clients.find(space, client)
      if (local) deliver(local, news)
      else toRing.add(addressOf(space, client))
    }
    for (const address of toRing) this.#bells.ring(address)
  }

  #readNews(client: LocalClient): void {
    // A reading that has not begun yet will see this news, too.
    if (client.isAboutToRead) return
    client.isAboutToRead = true
    const read = (file: LockFile) => {
      client.isAboutToRead = false
      return file.news.since(client.context, client.heard)
    }
    void this.#inBackground(read, { isLook: true }).then((found = []) => {
      client.isAboutToRead = false
      for (const { number, news } of found) this.#hear(client, number, news)
    })
  }

  #hear(client: LocalClient, number: number, news: Push): void {
    const hasLeft = this.#clients.find(client.context.space, client.context.id) !== client
    // Two readings can overlap.
    if (hasLeft || number <= client.heard) return
    client.heard = number
    client.hasOldNews = true
    deliver(client, news)
  }

  /**
   * Short-lived processes have to sweep, too. Before their first call rather than after it: a process that is stopped while it
   * has the file stops everybody, and once it holds a lock that is likely to be tried.
   */
  #sweepAtOpening(file: LockFile): void {
    try {
      this.#tell(file.change(() => sweep(file, findLapsedLines(file))))
    } catch (error) {
      // Somebody else has the file; the next one who opens it will sweep.
      if (!isBusy(error)) throw error
    }
    void this.#bells.sweep(MOST_BELLS)
  }

  #keepHouseIn(ms: number): void {
    this.#stopKeepingHouse?.()
    this.#stopKeepingHouse = this.#options.env.timer(ms, () => void this.#keepHouse(), { keepAlive: false })
  }

  async #keepHouse(): Promise<void> {
    this.#keepHouseIn(KEEP_HOUSE_EVERY_MS)
    this.#bells.touch()
    // Searched for outside the transaction that writes, so that nobody waits for the search.
    const lapsed = await this.#inBackground(findLapsedLines, { isLook: true })
    const missing = await this.#inBackground((file) => {
      const clients = beatWatchers(file, this.#clients.all())
      sweep(file, lapsed ?? [])
      return clients
    })
    this.#askEverything(missing ?? [])
    await this.#bells.sweep(MOST_BELLS)
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
