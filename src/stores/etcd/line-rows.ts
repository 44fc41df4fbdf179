import { admit } from '../../contract/admit.js'
import type { KeyEvent, KeyValue } from '../../drivers/etcd/index.js'
import type { EtcdNames } from './names.js'
import { compareRows, type EtcdRow, lastFence, rowOf } from './rows.js'

/** What `resize` set. */
export interface LinePin {
  readonly declared: number
  readonly capacity: number
  /**
   * The last create revision that held when the capacity shrank below that: these holds continue.
   */
  readonly heldUpTo?: number
  /**
   * The offset of that hold. Claims of one transaction share a revision, so a waiter may have it,
   * too. Left out in older pins.
   */
  readonly heldOffset?: number
  /** The capacity is the declared one again: the pin is left for `heldUpTo` only. */
  readonly isOver?: true
}

/** A line at one revision. A list of keys decides everything: there is no "granted" to keep. */
export class LineRows {
  /** In the order of the line. */
  readonly claims: EtcdRow[] = []
  pin: LinePin | null = null
  pinRevision = 0
  jumpRevision = 0
  readonly #byKey = new Map<string, EtcdRow>()
  readonly #names: EtcdNames
  readonly #resource: string
  #holdCount: number | null = null

  /** `read` gives the row of a claim's key. */
  constructor(names: EtcdNames, resource: string, keys: readonly KeyValue[] = [], read = rowOf) {
    this.#names = names
    this.#resource = resource
    for (const kv of keys) this.#read(kv, read)
    this.claims.sort(compareRows)
  }

  /**
   * How many keys the line has, and its last change: the same in two lines only if they are equal.
   */
  get digest(): string {
    let newest = Math.max(this.pinRevision, this.jumpRevision)
    for (const { modRevision } of this.claims) newest = Math.max(newest, modRevision)
    const count = this.claims.length + Number(this.pinRevision > 0) + Number(this.jumpRevision > 0)
    return `${count} ${newest}`
  }

  /** undefined: the line is empty and nothing is pinned, so the next claim decides. */
  get capacity(): number | undefined {
    return this.pin?.capacity ?? this.claims[0]?.value.capacity
  }

  /** How many claims are held: the first ones. */
  get holdCount(): number {
    this.#holdCount ??= this.#countHolds()
    return this.#holdCount
  }

  get holds(): EtcdRow[] {
    return this.claims.slice(0, this.holdCount)
  }

  /** The last fence that was given out of order; claims that wait get later ones. 0: none was. */
  get lastJump(): number {
    return this.jumpRevision === 0 ? 0 : lastFence(this.jumpRevision)
  }

  get(key: string): EtcdRow | undefined {
    return this.#byKey.get(key)
  }

  isHeld(row: EtcdRow): boolean {
    const last = this.claims[this.holdCount - 1]
    return last !== undefined && compareRows(row, last) <= 0
  }

  isNext(row: EtcdRow): boolean {
    return this.claims[this.holdCount]?.key === row.key
  }

  /** How many claims wait ahead of it. */
  ahead({ key }: EtcdRow): number {
    return this.claims.findIndex((claim) => claim.key === key) - this.holdCount
  }

  /** Whether a claim with the capacity that it declares can be in the line. */
  agrees(request: { capacity: number; permits: number }): boolean {
    const capacity = this.capacity ?? request.capacity
    const isKnown = request.capacity === capacity || request.capacity === this.pin?.declared
    return isKnown && request.permits <= capacity
  }

  /** Whether a claim that comes now would be granted at once. */
  fits(permits: number, declared: number): boolean {
    const used = this.claims.reduce((sum, { value }) => sum + value.permits, 0)
    return used + permits <= (this.capacity ?? declared)
  }

  /** As few claims ahead of it as it takes to make it wait: while they stay, it is not granted. */
  obstacles(row: EtcdRow): EtcdRow[] {
    const ahead = this.claims.slice(0, this.claims.indexOf(row))
    const obstacles: EtcdRow[] = []
    let free = (this.capacity ?? row.value.capacity) - row.value.permits
    for (const claim of ahead.toSorted((one, other) => other.value.permits - one.value.permits)) {
      if (free < 0) break
      obstacles.push(claim)
      free -= claim.value.permits
    }
    return obstacles
  }

  apply({ type, kv }: KeyEvent): void {
    if (type === 'put') return this.#put(kv)
    if (kv.key === this.#names.jump(this.#resource)) this.jumpRevision = 0
    else if (kv.key === this.#names.pin(this.#resource)) this.#setPin(null, 0)
    else this.remove(kv.key)
  }

  put(row: EtcdRow): void {
    const old = this.#byKey.get(row.key)
    if (old && old.modRevision > row.modRevision) return
    this.#holdCount = null
    this.#byKey.set(row.key, row)
    if (old) this.claims.splice(this.claims.indexOf(old), 1)
    const before = this.claims.findLastIndex((claim) => compareRows(claim, row) < 0)
    this.claims.splice(before + 1, 0, row)
  }

  remove(key: string): void {
    const row = this.#byKey.get(key)
    if (!row) return
    this.#holdCount = null
    this.#byKey.delete(key)
    this.claims.splice(this.claims.indexOf(row), 1)
  }

  #put(kv: KeyValue): void {
    if (kv.key.startsWith(this.#names.claims(this.#resource))) this.put(rowOf(kv))
    else this.#readAbout(kv)
  }

  #read(kv: KeyValue, read: (kv: KeyValue) => EtcdRow): void {
    if (!kv.key.startsWith(this.#names.claims(this.#resource))) return this.#readAbout(kv)
    const row = read(kv)
    this.#byKey.set(row.key, row)
    this.claims.push(row)
  }

  #readAbout({ key, value, modRevision }: KeyValue): void {
    if (key === this.#names.jump(this.#resource)) this.jumpRevision = modRevision
    if (key === this.#names.pin(this.#resource)) this.#setPin(parsePin(String(value)), modRevision)
  }

  #setPin(pin: LinePin | null, revision: number): void {
    this.#holdCount = null
    this.pin = pin
    this.pinRevision = revision
  }

  #countHolds(): number {
    const heldUpTo = this.pin?.heldUpTo ?? 0
    const before = heldUpTo === 0 ? 0 : this.claims.filter((row) => this.#wasHeld(row)).length
    return before + admit(this.#places(), this.capacity ?? 0).length
  }

  *#places(): Iterable<{ permits: number; granted: boolean }> {
    for (const row of this.claims) yield { permits: row.value.permits, granted: this.#wasHeld(row) }
  }

  /** Whether it held when the capacity shrank. */
  #wasHeld({ createRevision, value }: EtcdRow): boolean {
    const heldUpTo = this.pin?.heldUpTo ?? 0
    if (createRevision !== heldUpTo) return createRevision < heldUpTo
    return (value.offset ?? 0) <= (this.pin?.heldOffset ?? Infinity)
  }
}

/** null: it is none; other software may have such a key. */
function parsePin(text: string): LinePin | null {
  try {
    const pin = JSON.parse(text)
    return Number.isSafeInteger(pin?.declared) && Number.isSafeInteger(pin?.capacity) ? pin : null
  } catch {
    return null
  }
}
