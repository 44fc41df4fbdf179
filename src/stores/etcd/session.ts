import type { EtcdClient, EtcdLease, KeyCompare } from '../../drivers/etcd/index.js'
import { askAgain } from './failures.js'
import type { EtcdNames } from './names.js'

/**
 * The lease of one client, and the key that guards its claims. A transaction that makes a claim is
 * only done while the guard is unchanged. So after a lost answer, changing the guard makes sure
 * that the lost request is done by now, or never.
 */
export class EtcdSession {
  readonly client: EtcdClient
  readonly lease: EtcdLease
  readonly #names: EtcdNames
  #guarded: bigint | null = null
  #guardKey = ''
  #guardRevision = 0
  #hex = { lease: 0n, text: '0' }
  #opening: Promise<bigint> | null = null
  #attempts = 0

  constructor(client: EtcdClient, names: EtcdNames, ttlMs: number, onEnd: () => void) {
    this.client = client
    this.#names = names
    this.lease = client.lease(ttlMs, names.states, onEnd)
  }

  /** The lease that claims are attached to. */
  ready(): bigint | Promise<bigint> {
    const { id } = this.lease
    if (id !== null && id === this.#guarded) return id
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  /** Of a transaction that makes a claim. */
  get guard(): KeyCompare {
    return { key: this.#guardKey, target: 'mod', is: '=', value: this.#guardRevision }
  }

  /** The lease as it stands in keys. */
  hexOf(lease: bigint): string {
    if (this.#hex.lease !== lease) this.#hex = { lease, text: lease.toString(16) }
    return this.#hex.text
  }

  /** A number that no other attempt of this client has. */
  newAttempt(): string {
    return (++this.#attempts).toString(16)
  }

  /**
   * Once this is answered, whatever was sent before is either done or will never be. The key, as it
   * is then.
   */
  async settle(key: string): Promise<ReturnType<EtcdClient['get']>> {
    const lease = this.#guarded
    if (lease === null || this.lease.id !== lease) return null
    const { header, results } = await this.client.transaction({
      success: [
        { type: 'put', key: this.#guardKey, value: '', lease },
        { type: 'range', key },
      ],
    })
    if (this.#guarded === lease) this.#guardRevision = Math.max(this.#guardRevision, header.revision)
    return results[1]?.keys[0] ?? null
  }

  /** A transaction was refused by the guard: it has changed, or ended with the lease. */
  async readGuard(): Promise<void> {
    const lease = this.#guarded
    const found = await this.client.get(this.#guardKey)
    if (lease === null || lease !== this.lease.id) throw askAgain('The lease has ended')
    if (found) this.#guardRevision = Math.max(this.#guardRevision, found.modRevision)
    else this.lease.lost(lease)
  }

  async #open(): Promise<bigint> {
    const lease = await this.lease.ready()
    const key = this.#names.client(this.hexOf(lease))
    const { header } = await this.client.transaction({ success: [{ type: 'put', key, value: '', lease }] })
    // Not before the answer: until then no claim may rely on the guard.
    this.#guarded = lease
    this.#guardKey = key
    this.#guardRevision = header.revision
    return lease
  }
}
