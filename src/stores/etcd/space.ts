import { Agenda } from '../../base/agenda.js'
import type { Env } from '../../base/env.js'
import type { Push } from '../../contract/store.js'
import type { EtcdClient, Operation } from '../../drivers/etcd/index.js'
import { TransactionBatch } from './batch.js'
import { EtcdLine } from './line.js'
import { LineRows } from './line-rows.js'
import type { EtcdNames } from './names.js'
import type { EtcdRow } from './rows.js'
import { EtcdSession } from './session.js'

interface EtcdSpaceSettings {
  readonly client: EtcdClient
  readonly env: Env
  readonly names: EtcdNames
  readonly ttlMs: number
  readonly push: (news: Push) => void
  readonly onLeaseEnd: () => void
}

/** One space as one client uses it. */
export class EtcdSpace {
  readonly client: EtcdClient
  readonly env: Env
  readonly names: EtcdNames
  readonly push: (news: Push) => void
  readonly session: EtcdSession
  readonly batch: TransactionBatch
  /** The length of the lease that was asked for. */
  readonly askedTtlMs: number
  /** The lines in which this client has claims. */
  readonly #lines = new Map<string, EtcdLine>()
  /** The lines that are to be watched later, in the order of the times for that. */
  #unwatched: EtcdLine[] = []
  /** One timer for all of them: most holds end before their line is watched. */
  readonly #watches: Agenda

  constructor({ client, env, names, ttlMs, push, onLeaseEnd }: EtcdSpaceSettings) {
    this.client = client
    this.env = env
    this.names = names
    this.push = push
    this.askedTtlMs = ttlMs
    this.session = new EtcdSession(client, names, ttlMs, onLeaseEnd)
    this.batch = new TransactionBatch(client)
    this.#watches = new Agenda(env, () => this.#watchDue())
  }

  /** The line is to be watched at its `watchAt`, which is not before those of earlier calls. */
  watchLater(line: EtcdLine): void {
    this.#unwatched.push(line)
    this.#watches.by(line.watchAt)
  }

  /** No further line is watched. */
  stop(): void {
    this.#unwatched = []
    this.#watches.stop()
  }

  /** That claim is gone; it may be one of this client. */
  loseOwn(resource: string, row: EtcdRow): void {
    const claim = this.#lines.get(resource)?.own(row.key)
    if (claim?.owns(row)) claim.lose()
  }

  line(resource: string): EtcdLine {
    const known = this.#lines.get(resource)
    if (known) return known
    const line: EtcdLine = new EtcdLine(this, resource, () => {
      if (this.#lines.get(resource) === line) this.#lines.delete(resource)
    })
    this.#lines.set(resource, line)
    return line
  }

  #watchDue(): void {
    const now = this.env.now()
    const first = this.#unwatched.findIndex(({ watchAt }) => watchAt > now && watchAt < Infinity)
    const due = this.#unwatched.splice(0, first < 0 ? this.#unwatched.length : first)
    for (const line of due) if (line.watchAt <= now) line.watch()
    const [next] = this.#unwatched
    if (next) this.#watches.by(next.watchAt)
  }

  /** Reads all keys of a line. */
  listing(resource: string): Operation {
    return { type: 'range', key: this.names.lineStart(resource), end: this.names.lineEnd(resource) }
  }

  /** The line as it is now. */
  async list(resource: string): Promise<{ rows: LineRows; revision: number }> {
    const { header, results } = await this.client.transaction({ success: [this.listing(resource)] })
    const rows = new LineRows(this.names, resource, results[0]?.keys)
    return { rows, revision: header.revision }
  }
}
