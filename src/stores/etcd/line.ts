import type { KeyEvent, KeyValue } from '../../drivers/etcd/index.js'
import { CallQueue } from '../shared/call-queue.js'
import type { EtcdClaim } from './claim.js'
import { LineJoins } from './joins.js'
import { LineRows } from './line-rows.js'
import { type EtcdRow, rowOf } from './rows.js'
import type { EtcdSpace } from './space.js'

/** The number of a key that is used again; those of attempts begin with 1. */
const FIRST_NUMBER = '0'

/** Most holds end before that. Only a line in which one lasts longer, or one waits, is watched. */
const WATCH_AFTER_MS = 50

/**
 * A line in which this client has claims, as it was at `revision`. A watch keeps it up to date
 * while a claim waits. What is older than the servers' state shows too many claims ahead, never too
 * few.
 */
export class EtcdLine {
  readonly resource: string
  /** The claims of this client that enter the line, and what else has to see them in it. */
  readonly entries = new CallQueue()
  readonly joins: LineJoins
  /** The claims that take a later fence than that of their place. */
  readonly lateFences = new CallQueue()
  rows: LineRows
  /** 0: the line was not read yet. */
  revision = 0
  /** When to watch it. Infinity: it is watched, or need not be. */
  watchAt = Infinity
  readonly #space: EtcdSpace
  readonly #onEmpty: () => void
  /** By key. */
  readonly #own = new Map<string, EtcdClaim>()
  /** The keys that this client has removed, while `rows` still shows them. */
  readonly #removed = new Set<string>()
  readonly #waiters = new Set<() => void>()
  #isFirstNumberTaken = false
  #users = 0
  #stopWatching: (() => void) | null = null
  #reading: Promise<void> | null = null

  constructor(space: EtcdSpace, resource: string, onEmpty: () => void) {
    this.#space = space
    this.resource = resource
    this.#onEmpty = onEmpty
    this.rows = new LineRows(space.names, resource)
    this.joins = new LineJoins(space, this)
  }

  /** Every change from `revision` on arrives by itself. */
  get isWatched(): boolean {
    return this.#stopWatching !== null
  }

  /** Others wait. The copy may still show claims that this client has removed. */
  get isWanted(): boolean {
    const { claims, holdCount } = this.rows
    if (claims.length === holdCount) return false
    return claims.slice(holdCount).some(({ key }) => !this.#removed.has(key))
  }

  /** The line is needed until `leave`, once for each. */
  enter(): void {
    this.#users++
  }

  leave(): void {
    if (--this.#users > 0) return
    this.#stop()
    this.#onEmpty()
  }

  /**
   * The number in the key of a new claim. While this client has no other claim in the line, always
   * the same one: the servers keep the names of removed keys until they compact, and would go
   * through all of them whenever the line is read. Later claims get numbers of their own, as the
   * copy of the line may still show the earlier ones.
   */
  takeNumber(attempt: string): string {
    if (this.#isFirstNumberTaken) return attempt
    this.#isFirstNumberTaken = true
    return FIRST_NUMBER
  }

  own(key: string): EtcdClaim | undefined {
    return this.#own.get(key)
  }

  /** A claim of this client has its key. */
  add(claim: EtcdClaim, row: EtcdRow): void {
    const before = this.#own.get(row.key)
    if (before !== claim) before?.lose()
    this.#own.set(row.key, claim)
    const known = this.rows.get(row.key)
    // The watch, or a read, was faster than the answer, and knows what became of the key since.
    if (row.modRevision <= this.revision && !claim.owns(known)) return claim.lose()
    // Only a key that is new. What this client changes or removes is taken from the servers, in the
    // order of all changes: a mixture of old and new, such as an old capacity, may let one too many
    // in.
    if (!known) this.rows.put(row)
  }

  /** This client has removed the key. */
  remove(claim: EtcdClaim, key: string): void {
    this.forget(claim, key)
    // The watch may have told of it already.
    if (this.rows.get(key)) this.#removed.add(key)
  }

  /** Whether a claim that came up to that revision is in line, besides the one with that key. */
  hasOlder(revision: number, exceptKey: string): boolean {
    return this.rows.claims.some(
      ({ key, createRevision }) => createRevision <= revision && key !== exceptKey && !this.#removed.has(key),
    )
  }

  /** The key belongs to another claim now, or is gone with the lease. */
  forget(claim: EtcdClaim, key: string): void {
    if (this.#own.get(key) === claim) this.#own.delete(key)
  }

  /** The keys of the line, as they were at `revision`. */
  load(keys: readonly KeyValue[], revision: number): void {
    if (revision < this.revision) return
    const rows = new LineRows(this.#space.names, this.resource, keys, (kv) => this.#rowOf(kv))
    for (const [key, claim] of this.#own) {
      const row = this.rows.get(key)
      if (row && row.modRevision > revision) rows.put(row)
      else if (!claim.owns(rows.get(key)) && !claim.wroteAfter(revision)) claim.lose()
    }
    this.rows = rows
    this.revision = revision
    for (const key of this.#removed) if (!rows.get(key)) this.#removed.delete(key)
    this.settle()
  }

  /** Reads the line again. Calls that come meanwhile share the answer. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  /** Resolves when everything up to `revision` is known; null: it is. */
  reached(revision: number): Promise<void> | null {
    return this.revision < revision ? this.#reached(revision) : null
  }

  async #reached(revision: number): Promise<void> {
    // After a lost answer it may not have been read at all.
    if (this.revision === 0) await this.read()
    while (this.revision < revision && this.#users > 0) {
      this.watch()
      await new Promise<void>((resolve) => this.#waiters.add(resolve))
    }
  }

  /** Grants what is to be granted, and watches the line if somebody of this client waits. */
  settle(): void {
    const { rows } = this
    let isAfterLate = false
    for (let index = 0; index < rows.holdCount; index++) {
      const row = rows.claims[index]
      if (!row || row.createRevision > this.revision) break
      if (this.#own.get(row.key)?.onFirst(isAfterLate)) isAfterLate = true
    }
    this.#wake()
    this.#tellWanted()
  }

  /** From now on, or soon. */
  watchSoon(now: number): void {
    if (this.watchAt < Infinity || this.#stopWatching) return
    this.watchAt = now + WATCH_AFTER_MS
    this.#space.watchLater(this)
  }

  watch(): void {
    this.watchAt = Infinity
    if (this.#stopWatching || this.revision === 0 || this.#users === 0) return
    const { client, names } = this.#space
    this.#stopWatching = client.watch({
      key: names.lineStart(this.resource),
      end: names.lineEnd(this.resource),
      from: this.revision + 1,
      onEvents: (events) => this.#apply(events),
      onCompacted: () => this.#onCompacted(),
    })
  }

  /** What this client has written itself is not read again. */
  #rowOf(kv: KeyValue): EtcdRow {
    const row = this.#own.get(kv.key)?.row
    return row?.modRevision === kv.modRevision && row.key === kv.key ? row : rowOf(kv)
  }

  #apply(events: readonly KeyEvent[]): void {
    for (const event of events) {
      const { key, modRevision } = event.kv
      if (modRevision <= this.revision) continue
      this.rows.apply(event)
      this.#removed.delete(key)
      const claim = this.#own.get(key)
      if (claim && !claim.owns(this.rows.get(key)) && !claim.wroteAfter(modRevision)) claim.lose()
    }
    this.revision = Math.max(this.revision, events.at(-1)?.kv.modRevision ?? 0)
    this.settle()
  }

  /** What happened since `revision` is not known any more: look at what is there now. */
  #onCompacted(): void {
    this.#stopWatching = null
    this.read().then(
      () => this.watch(),
      // The next pulse reads it; a call that waits for the line watches it again.
      () => this.#wake(),
    )
  }

  #wake(): void {
    for (const resolve of this.#waiters) resolve()
    this.#waiters.clear()
  }

  async #read(): Promise<void> {
    const { header, results } = await this.#space.client.transaction({
      success: [this.#space.listing(this.resource)],
    })
    this.load(results[0]?.keys ?? [], header.revision)
  }

  #tellWanted(): void {
    if (!this.isWanted) return
    for (const row of this.rows.holds) this.#own.get(row.key)?.onWanted()
  }

  #stop(): void {
    this.watchAt = Infinity
    this.#stopWatching?.()
    this.#stopWatching = null
    this.#wake()
  }
}
