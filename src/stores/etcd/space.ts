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
  /** One timer for all lines: a hold is taken and given back far more often than one is watched. */
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

  /** A line is to be watched at that time. */
  watchBy(at: number): void {
    this.#watches.by(at)
  }

  /** Ends the timer. */
  stop(): void {
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
    let next = Infinity
    for (const line of this.#lines.values()) next = Math.min(next, line.watchIfDue(now))
    this.#watches.by(next)
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
