import { type Deferred, deferred } from '../../base/deferred.js'
import { type MultiOperation, ZooKeeperError } from '../../drivers/zookeeper/index.js'
import type { SharedSession } from './session.js'

/** What became of a write: its transaction, and the path of what it made. */
interface Written {
  readonly zxid: bigint
  readonly path: string
}

/** A claim that joins a line, or leaves it. */
type LineWrite = Extract<MultiOperation, { type: 'create' | 'delete' }>

interface Entry {
  /** What goes with it, in the same transaction and before it. */
  readonly first: readonly MultiOperation[]
  readonly operation: LineWrite
  readonly outcome: Deferred<Written>
}

/** Far below what one request may have. */
const MOST = 100

/**
 * Joins and leaves of one turn of the event loop, as one transaction: for the servers that is one entry in their logs and one vote, however
 * many there are. A transaction has one number, and so one fence: of each line, one claim is in it.
 */
export class Batch {
  readonly #session: SharedSession
  #entries: Entry[] = []
  readonly #lines = new Set<string>()

  constructor(session: SharedSession) {
    this.#session = session
  }

  /** A write that belongs to a line. Sent before anything that is asked for in a later turn. */
  write(operation: LineWrite, line: string, first: readonly MultiOperation[] = []): Promise<Written> {
    if (this.#lines.has(line) || this.#entries.length === MOST) this.send()
    if (this.#entries.length === 0) process.nextTick(() => this.send())
    const outcome = deferred<Written>()
    this.#entries.push({ first, operation, outcome })
    this.#lines.add(line)
    return outcome.promise
  }

  /** Now, and not at the end of the turn. */
  send(): void {
    const entries = this.#entries
    this.#entries = []
    this.#lines.clear()
    if (entries.length > 1) void this.#together(entries)
    else for (const entry of entries) void this.#alone(entry)
  }

  async #together(entries: readonly Entry[]): Promise<void> {
    try {
      const written = await this.#multi(entries)
      entries.forEach(({ outcome }, index) => {
        outcome.resolve(written[index] as Written)
      })
    } catch (error) {
      // One of them cannot be done, so none was. Which one that is, and whether others are like it, shows one by one.
      const isRefused = error instanceof ZooKeeperError && error.index !== undefined
      for (const entry of entries) {
        if (isRefused) void this.#alone(entry)
        else entry.outcome.reject(error)
      }
    }
  }

  async #alone(entry: Entry): Promise<void> {
    const { first, operation, outcome } = entry
    try {
      if (first.length > 0) outcome.resolve((await this.#multi([entry]))[0] as Written)
      else if (operation.type === 'create') {
        const { data, acl, mode } = operation
        const { path, stat } = await this.#session.write((zk) =>
          zk.create(operation.path, { data, acl, mode }),
        )
        outcome.resolve({ path, zxid: stat.czxid })
      } else {
        const { path } = operation
        const { zxid } = await this.#session.write((zk) => zk.delete(path))
        outcome.resolve({ path, zxid })
      }
    } catch (error) {
      outcome.reject(error)
    }
  }

  async #multi(entries: readonly Entry[]): Promise<Written[]> {
    const operations = entries.flatMap(({ first, operation }) => [...first, operation])
    const { zxid, results } = await this.#session.write((zk) => zk.multi(operations))
    let index = -1
    return entries.map(({ first, operation }) => {
      index += first.length + 1
      const result = results[index]
      return { zxid, path: result?.type === 'create' ? result.path : operation.path }
    })
  }
}
