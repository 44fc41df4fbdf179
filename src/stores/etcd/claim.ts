import type { ClaimRequest } from '../../contract/store.js'
import type { KeyCompare, KeyValue, Operation } from '../../drivers/etcd/index.js'
import { CallQueue } from '../shared/call-queue.js'
import { ClaimExpiry } from '../shared/claim-expiry.js'
import type { SessionClaim } from '../shared/claim-table.js'
import { askAgain, isUncertain } from './failures.js'
import type { EtcdLine } from './line.js'
import { type ClaimValue, type EtcdRow, fenceOf, firstFence, rowOf } from './rows.js'
import type { EtcdSpace } from './space.js'
import { tidyOperations } from './tidy.js'

/**
 * - `new`: it has no key yet, or the answer that tells of it was lost
 * - `waiting`, `held`: it is in line
 * - `gone`: it has left the line, is leaving it, or was removed
 */
export type EtcdClaimState = 'new' | 'waiting' | 'held' | 'gone'

/** One claim of this client, from its request to its end. */
export class EtcdClaim implements SessionClaim {
  readonly key: string
  readonly request: ClaimRequest
  readonly line: EtcdLine
  readonly expiry: ClaimExpiry
  readonly calls = new CallQueue()
  /** The line has the capacity that it declares. */
  isAccepted = false
  /** A write was not answered. */
  isUncertain = false
  /** The line is known as it was after the present call was made. */
  isFresh = false
  readonly #space: EtcdSpace
  #state: EtcdClaimState = 'new'
  /** Its key, as far as we know; null: it has none. */
  #row: EtcdRow | null = null
  /** What is being written. */
  #pending: { key: string; value: ClaimValue } | null = null
  #lease = 0n
  /** The engine may have another claim under the same id by now: no push tells of this one. */
  #isAbandoned = false
  #isWanted = false
  #isGettingFence = false
  #isFinished = false

  constructor(space: EtcdSpace, request: ClaimRequest, key: string, now: number) {
    this.#space = space
    this.request = request
    this.key = key
    this.expiry = new ClaimExpiry(request, now)
    this.line = space.line(request.resource)
    this.line.enter()
  }

  get state(): EtcdClaimState {
    return this.#state
  }

  get row(): EtcdRow | null {
    return this.#row
  }

  get fence(): number {
    return this.#row ? fenceOf(this.#row) : 0
  }

  /** Claims before it were given higher fences than its own, after it came. */
  get isOvertaken(): boolean {
    const { jumpRevision } = this.line.rows
    // The claim that made the jump has the first of its fences.
    return jumpRevision > 0 && this.fence < firstFence(jumpRevision)
  }

  /**
   * Whether others wait for it; undefined: the line was not read for the present call, and the copy
   * may show waiters that have left.
   */
  takeWanted(): boolean | undefined {
    const isWanted = this.isFresh ? this.line.isWanted : undefined
    this.isFresh = false
    return isWanted
  }

  isAlive(now: number): boolean {
    return this.#state !== 'gone' && this.expiry.at > now
  }

  /** The key is still this claim's. */
  owns(row: EtcdRow | undefined): boolean {
    return row !== undefined && row.value.attempt === this.#row?.value.attempt
  }

  /** What its key was at that revision tells nothing: the claim has written it since. */
  wroteAfter(revision: number): boolean {
    return this.#row !== null && this.#row.modRevision > revision
  }

  /**
   * Throws if the claim was lost with the lease. A key on the next lease would bar the line, and
   * nobody would know of it.
   */
  checkWanted(): void {
    if (this.#state === 'gone')
      throw askAgain(`The lease ended before '${this.request.resource}' was claimed`)
  }

  /** The write of a new key at the end of the line. */
  prepare(lease: bigint, offset: number): Operation {
    const { session, names } = this.#space
    const attempt = session.newAttempt()
    const number = this.line.takeNumber(attempt)
    const key = `${names.claims(this.request.resource)}${session.hexOf(lease)}-${number}`
    const value = this.#newValue(lease, attempt)
    return this.#write(key, lease, offset > 0 ? { ...value, offset } : value)
  }

  /**
   * What was prepared is a new key: where it is there already, because the hold was stolen, the
   * write would take that one's place.
   */
  get isNew(): KeyCompare {
    return { key: this.#pending?.key ?? '', target: 'create', is: '=', value: 0 }
  }

  /** The write that takes over the key, and so the place, of another claim, with that size. */
  prepareOver(row: EtcdRow, lease: bigint, size: Pick<ClaimValue, 'permits' | 'capacity'>): Operation {
    const attempt = this.#space.session.newAttempt()
    const { permits, capacity } = size
    const value = { ...this.#newValue(lease, attempt), permits, capacity, isLate: true } as const
    return this.#write(row.key, lease, value)
  }

  /** What was prepared is written. */
  onKey(createRevision: number, modRevision: number): void {
    const pending = this.#pending
    if (!pending || this.#state === 'gone') return
    const { key, value } = pending
    const before = this.#row
    this.#pending = null
    this.#row = { key, value, createRevision, modRevision, isOwn: true }
    if (this.#state === 'new') this.#state = 'waiting'
    if (before && before.key !== this.#row.key) this.line.forget(this, before.key)
    this.line.add(this, this.#row)
  }

  /**
   * It is among the claims that hold. `isAfterLate`: one before it is taking a later fence, so this
   * one needs a later fence, too. Returns whether it takes one.
   */
  onFirst(isAfterLate = false): boolean {
    if (this.#isGettingFence) return true
    if (this.#state !== 'waiting' || !this.isAccepted || this.isUncertain) return false
    if (!this.isOvertaken && !isAfterLate) {
      this.#hold()
      return false
    }
    this.#isGettingFence = true
    const take = (): Promise<void> => this.calls.run(() => this.takeLaterFence())
    // One after the other, so that the fences have the order of the line.
    void this.line.lateFences.run(take).catch(() => {})
    return true
  }

  onWanted(): void {
    if (this.#state !== 'held' || this.#isWanted) return
    this.#isWanted = true
    if (this.request.block > 1) this.#push('wanted')
  }

  /**
   * Claims before it were given higher fences than its own: it takes one that is above those, and
   * holds.
   */
  async takeLaterFence(): Promise<void> {
    this.#isGettingFence = true
    try {
      if (this.#state !== 'waiting' || !this.#row) return
      const { fence: _, offset: __, ...value } = this.#row.value
      if (await this.#rewrite({ ...value, isLate: true })) this.#hold()
    } finally {
      this.#isGettingFence = false
    }
  }

  /** Gives permits back, and keeps its place and fence. */
  async shrink(permits: number): Promise<void> {
    const row = this.#row
    if (!row || permits >= row.value.permits) return
    await this.#rewrite({ ...row.value, permits, fence: this.fence })
  }

  /**
   * Reserves a block of fences above all that the line has given; its first. null: the claim is
   * gone.
   */
  async reserve(): Promise<number | null> {
    const { client } = this.#space
    const success = [this.#jump, this.#space.listing(this.request.resource)]
    // By itself, not in a batch: all fences of the revision are this claim's.
    const { succeeded, header, results } = await client.transaction({ compare: [this.#mine()], success })
    if (succeeded) {
      this.line.load(results[1]?.keys ?? [], header.revision)
      return firstFence(header.revision)
    }
    await this.recover()
    return this.#state === 'held' ? this.reserve() : null
  }

  /** Finds out what became of a write whose answer was lost, or which was refused. */
  async recover(): Promise<void> {
    const key = this.#pending?.key ?? this.#row?.key
    if (key === undefined) {
      this.isUncertain = false
      return
    }
    const found = await this.#space.session.settle(key)
    this.isUncertain = false
    const attempts = [this.#pending?.value.attempt, this.#row?.value.attempt]
    const row = found && rowOf(found)
    if (row && attempts.includes(row.value.attempt)) this.#recovered(found)
    else if (this.#state !== 'new') this.lose()
    this.#pending = null
  }

  /** Leaves the line. false: it was not there any more. */
  async leave(): Promise<boolean> {
    for (;;) {
      if (this.isUncertain) await this.recover()
      const before = this.#state
      const row = this.#row
      if (!row || before === 'gone') break
      // From now on the end of the key is not a loss.
      this.#state = 'gone'
      if (await this.#remove(row, before)) {
        this.line.remove(this, row.key)
        this.#finish()
        return true
      }
      // The key may be there, with a later value that we do not know of.
      this.#state = before
      await this.recover()
    }
    this.#state = 'gone'
    this.#finish()
    return false
  }

  /** The engine does not want it any more; its key, if it has one, is about to be removed. */
  abandon(): void {
    this.#isAbandoned = true
  }

  lose(): void {
    if (this.#state === 'gone') return
    this.#state = 'gone'
    if (this.#row) this.line.forget(this, this.#row.key)
    this.#finish()
    this.#push('lost')
  }

  #finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.line.leave()
  }

  #hold(): void {
    this.#state = 'held'
    this.#isWanted = this.line.isWanted
    const now = this.#space.env.now()
    this.expiry.grant(now)
    this.line.watchSoon(now)
    if (!this.expiry.hasWaited || this.#isAbandoned) return
    const { resource, id } = this.request
    this.#space.push({ type: 'granted', resource, id, fence: this.fence })
  }

  #push(type: 'lost' | 'wanted'): void {
    const { resource, id } = this.request
    if (!this.#isAbandoned) this.#space.push({ type, resource, id })
  }

  /** `before`: its state if that fails. */
  async #remove(row: EtcdRow, before: EtcdClaimState): Promise<boolean> {
    const { batch } = this.#space
    const tidy = tidyOperations(this.#space.names, this.line, row)
    const success = [{ type: 'delete', key: row.key } as const, ...tidy]
    try {
      return (await batch.run({ compare: [this.#mine()], success })).succeeded
    } catch (error) {
      this.#state = before
      throw error
    }
  }

  /** Writes another value into its key. false: the key is not this claim's any more. */
  async #rewrite(value: ClaimValue): Promise<boolean> {
    const row = this.#row
    if (!row) return false
    const put = this.#write(row.key, this.#lease, value)
    try {
      // By itself, not in a batch: the fences of the revision are this claim's.
      const { succeeded, header } = await this.#space.client.transaction({
        compare: [this.#mine()],
        // It is above the fences of claims that came in between, so they need later ones, too.
        success: value.isLate && value.fence === undefined ? [put, this.#jump] : [put],
      })
      if (succeeded) this.onKey(row.createRevision, header.revision)
      else await this.recover()
      return succeeded && this.#state !== 'gone'
    } catch (error) {
      if (isUncertain(error)) this.isUncertain = true
      throw error
    }
  }

  #recovered(found: KeyValue): void {
    const { createRevision, modRevision } = found
    const { key, value } = rowOf(found)
    this.#pending = { key, value }
    this.onKey(createRevision, modRevision)
  }

  get #jump(): Operation {
    return { type: 'put', key: this.#space.names.jump(this.request.resource), value: '' }
  }

  /** Nobody has written to its key since. */
  #mine(): KeyCompare {
    const { key, modRevision } = this.#row as EtcdRow
    return { key, target: 'mod', is: '=', value: modRevision }
  }

  #write(key: string, lease: bigint, value: ClaimValue): Operation {
    this.#pending = { key, value }
    this.#lease = lease
    return { type: 'put', key, value: JSON.stringify(value), lease }
  }

  #newValue(lease: bigint, attempt: string): ClaimValue {
    const { id, permits, capacity, info } = this.request
    const { session, env } = this.#space
    const ttlMs = session.lease.ttlMs
    const since = Math.round(env.wallMs())
    return { id, attempt: `${session.hexOf(lease)}-${attempt}`, permits, capacity, info, ttlMs, since }
  }
}
