import { type MultiOperation, ZooKeeperError } from '../../drivers/zookeeper/index.js'
import type { SharedSession } from './session.js'

/** A write that was done: its transaction, and the path of the node. */
export interface WrittenNode {
  readonly zxid: bigint
  readonly path: string
}

/** A claim that joins a line, or leaves it. */
type LineWrite = Extract<MultiOperation, { type: 'create' | 'delete' }>

interface BatchEntry {
  readonly resource: string
  /** Done before it, in the same transaction. */
  readonly before: readonly MultiOperation[]
  readonly operation: LineWrite
  readonly resolve: (written: WrittenNode) => void
  readonly reject: (error: unknown) => void
}

/** Far below what one request may have. */
const MOST_ENTRIES = 100
/** A quarter of what servers take by default. Long names fill a request before the entries do. */
const MOST_BYTES = 256 * 1024

/**
 * Sends the joins and leaves of one turn of the event loop as one transaction: the servers log it
 * and vote on it once, whatever its size. A transaction has one number, and so one fence: it has
 * one claim of each line at most.
 */
export class WriteBatch {
  readonly #session: SharedSession
  #entries: BatchEntry[] = []
  #bytes = 0

  constructor(session: SharedSession) {
    this.#session = session
  }

  /**
   * A write to the line of `resource`. It is sent before anything that is requested in a later
   * turn.
   */
  write(
    operation: LineWrite,
    resource: string,
    before: readonly MultiOperation[] = NOTHING,
  ): Promise<WrittenNode> {
    const bytes = sizeOf(operation) + before.reduce((sum, each) => sum + sizeOf(each), 0)
    const isFull = this.#entries.length === MOST_ENTRIES || this.#bytes + bytes > MOST_BYTES
    if (isFull || this.#has(resource)) this.send()
    if (this.#entries.length === 0) process.nextTick(this.#sendThis)
    this.#bytes += bytes
    return new Promise((resolve, reject) => {
      this.#entries.push({ resource, before, operation, resolve, reject })
    })
  }

  /** Sends now, and not at the end of the turn. */
  send(): void {
    const entries = this.#entries
    this.#entries = []
    this.#bytes = 0
    if (entries.length > 1) void this.#sendTogether(entries)
    else for (const entry of entries) this.#sendAlone(entry)
  }

  #has(resource: string): boolean {
    return this.#entries.some((entry) => entry.resource === resource)
  }

  readonly #sendThis = (): void => this.send()

  async #sendTogether(entries: readonly BatchEntry[]): Promise<void> {
    try {
      const written = await this.#multi(entries)
      for (const [index, { resolve }] of entries.entries()) resolve(written[index] as WrittenNode)
    } catch (error) {
      // If one of them is refused, none is done. Sent one by one, they show which ones are refused.
      const isRefused = error instanceof ZooKeeperError && error.index !== undefined
      for (const entry of entries) {
        if (isRefused) this.#sendAlone(entry)
        else entry.reject(error)
      }
    }
  }

  #sendAlone(entry: BatchEntry): void {
    const { operation, resolve, reject } = entry
    const { path } = operation
    const { zk } = this.#session
    if (entry.before.length > 0)
      this.#multi([entry]).then(([written]) => resolve(written as WrittenNode), reject)
    else if (operation.type === 'create') {
      const { data, acl, mode } = operation
      const created = zk.create(path, { data, acl, mode })
      created.then((made) => resolve({ path: made.path, zxid: made.stat.czxid }), reject)
    } else zk.delete(path).then(({ zxid }) => resolve({ path, zxid }), reject)
  }

  async #multi(entries: readonly BatchEntry[]): Promise<WrittenNode[]> {
    const operations = entries.flatMap(({ before, operation }) => [...before, operation])
    const { zxid, results } = await this.#session.zk.multi(operations)
    let index = -1
    return entries.map(({ before, operation }) => {
      index += before.length + 1
      const result = results[index]
      return { zxid, path: result?.type === 'create' ? result.path : operation.path }
    })
  }
}

const NOTHING: readonly MultiOperation[] = []

function sizeOf(operation: MultiOperation): number {
  const { data = '' } = 'data' in operation ? operation : {}
  return Buffer.byteLength(operation.path) + Buffer.byteLength(data)
}
