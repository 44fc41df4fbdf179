import { nothing } from '../../base/nothing.js'
import { EtcdLease, GRANT, REVOKE } from './lease.js'
import { EtcdLink } from './link.js'
import { type EtcdOptions, linkSettings } from './options.js'
import { type EtcdTransaction, encode, encodeTransaction, type Key, type RangeOperation } from './requests.js'
import {
  type ClusterMember,
  type KeyPage,
  type KeyValue,
  readLastKey,
  readLease,
  readMembers,
  readStatus,
  readTransaction,
  type ServerStatus,
  type TransactionResult,
} from './responses.js'
import { type KeyWatch, WatchStream } from './watch-stream.js'

const TXN = '/etcdserverpb.KV/Txn'
const STATUS = '/etcdserverpb.Maintenance/Status'
const MEMBERS = '/etcdserverpb.Cluster/MemberList'

/**
 * A client of an etcd cluster (3.4 or later), made for locks: it leaves servers that are stalled
 * for another one, continues its watches there, has a deadline for every request, and never repeats
 * one by itself. It connects at the first request.
 *
 * @example
 * ```ts
 * import { EtcdClient } from 'holdfast/etcd/client'
 *
 * const etcd = new EtcdClient('etcd1:2379,etcd2:2379,etcd3:2379', { tls: true })
 * await etcd.put('greeting', 'hello')
 * console.log(String((await etcd.get('greeting'))?.value))
 * await etcd.close()
 * ```
 */
export class EtcdClient {
  readonly #link: EtcdLink
  readonly #watches: WatchStream
  readonly #settings: ReturnType<typeof linkSettings>
  readonly #leases = new Set<EtcdLease>()

  /** `servers` is `host1:2379,host2:2379`. */
  constructor(servers: string, options: EtcdOptions = {}) {
    this.#settings = linkSettings(servers, options)
    this.#link = new EtcdLink(this.#settings)
    this.#watches = new WatchStream(this.#link)
  }

  /** Why requests are not answered; null: they are. */
  get trouble(): string | null {
    return this.#link.trouble
  }

  /** How many servers the address names. */
  get hostCount(): number {
    return this.#link.hostCount
  }

  /** Does everything in one step, at a majority of the servers. */
  async transaction(transaction: EtcdTransaction): Promise<TransactionResult> {
    const sentAt = this.#settings.env.now()
    const result = readTransaction(await this.#link.call(TXN, encodeTransaction(transaction), sentAt))
    for (const lease of this.#leases) lease.confirm(result.header.raftTerm, sentAt)
    return result
  }

  /** The keys of a range. */
  async range(range: Omit<RangeOperation, 'type'>): Promise<{ keys: readonly KeyValue[]; revision: number }> {
    const { header, results } = await this.transaction({ success: [{ type: 'range', ...range }] })
    return { keys: results[0]?.keys ?? [], revision: header.revision }
  }

  /** The first keys of a range. `next`: where the rest of it begins; null: these were all. */
  async page(range: Omit<RangeOperation, 'type'> & { limit: number }): Promise<KeyPage> {
    const transaction: EtcdTransaction = { success: [{ type: 'range', ...range }] }
    const bytes = await this.#link.call(TXN, encodeTransaction(transaction))
    const { header, results } = readTransaction(bytes)
    const keys = results[0]?.keys ?? []
    const last = keys.length < range.limit ? null : readLastKey(bytes)
    return { keys, revision: header.revision, next: last && Buffer.concat([last, Buffer.of(0)]) }
  }

  /** One key; null: there is none. */
  async get(key: Key): Promise<KeyValue | null> {
    return (await this.range({ key })).keys[0] ?? null
  }

  /** Writes one key; the revision that did it. */
  async put(key: Key, value: Key): Promise<number> {
    return (await this.transaction({ success: [{ type: 'put', key, value }] })).header.revision
  }

  /** Removes one key; whether there was one. */
  async delete(key: Key): Promise<boolean> {
    return (await this.transaction({ success: [{ type: 'delete', key }] })).results[0]?.count === 1
  }

  /**
   * Tells of every change from a revision on, also over connections that end. Returns what ends it.
   */
  watch(watch: KeyWatch): () => void {
    return this.#watches.add(watch)
  }

  /**
   * A lease that is kept alive. Renewals are confirmed by reading `key`, which need not exist, but
   * which the user must be allowed to read. `onEnd` is called when the lease has ended although it
   * was not closed.
   */
  lease(ttlMs: number, key: Key, onEnd: () => void): EtcdLease {
    const confirm = async (): Promise<void> => {
      await this.get(key)
    }
    const onClosed = (closed: EtcdLease): void => {
      this.#leases.delete(closed)
    }
    const { env, requestTimeoutMs } = this.#settings
    const link = this.#link
    const lease = new EtcdLease({ link, env, ttlMs, requestTimeoutMs, confirm, onEnd, onClosed })
    this.#leases.add(lease)
    return lease
  }

  /** The id of a lease that ends after that time, because nobody renews it. */
  async grant(ttlMs: number): Promise<bigint> {
    const message = encode((out) => out.int(1, Math.ceil(ttlMs / 1000)))
    return readLease(await this.#link.call(GRANT, message)).id
  }

  /** Ends a lease, and removes the keys that have it. */
  async revoke(id: bigint): Promise<void> {
    await this.#link.call(
      REVOKE,
      encode((out) => out.int(1, id)),
    )
  }

  /** What the server that we are connected to tells about itself. */
  async status(): Promise<ServerStatus> {
    return readStatus(await this.#link.call(STATUS, encode(nothing)))
  }

  /** The servers of the cluster. */
  async members(): Promise<ClusterMember[]> {
    return readMembers(await this.#link.call(MEMBERS, encode(nothing)))
  }

  /** Ends the connection. Leases are revoked as far as the servers can be reached. */
  async close(): Promise<void> {
    await Promise.all([...this.#leases].map((lease) => lease.close()))
    this.#watches.close()
    this.#link.close()
  }
}
