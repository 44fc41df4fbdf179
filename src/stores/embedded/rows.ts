/** A claim as an embedded store keeps it. Times are the store's monotonic milliseconds. */
export interface ClaimRow {
  readonly resource: string
  readonly id: string
  readonly client: string
  readonly permits: number
  /** The capacity that the claimant declared. */
  readonly capacity: number
  /** null: it waits. */
  readonly fence: number | null
  /** When it lapses: the end of its presence while it waits, of its lease while it holds. */
  readonly expires: number
  readonly maxHoldMs: number | null
  /**
   * The highest fence that the claimant had seen, and how many it reserves: for a later promotion.
   */
  readonly floor: number
  readonly block: number
  /** When it joined the line, or was granted. */
  readonly since: number
  readonly info: string
}

/** The part of a row that can change while it is in its line. */
export type ClaimRowChange = Partial<Pick<ClaimRow, 'permits' | 'fence' | 'expires' | 'since' | 'block'>>

/** A capacity that `resize` set, with the one that claimants still declare. */
export interface Pin {
  readonly declared: number
  readonly capacity: number
}

/**
 * Where an embedded store keeps its rows; `EmbeddedLines` decides what happens to them. Every call
 * is synchronous: the store makes each group of calls atomic (no await in between, or one
 * transaction).
 */
export interface ClaimRows {
  first(resource: string): ClaimRow | undefined
  /**
   * The rest of the line in order, read lazily. No row is added or removed while it is being read.
   */
  behindFirst(first: ClaimRow): Iterable<ClaimRow>
  get(resource: string, id: string): ClaimRow | undefined
  append(row: ClaimRow): void
  prepend(row: ClaimRow): void
  /** Puts `row` where `old` was. */
  replace(old: ClaimRow, row: ClaimRow): void
  update(row: ClaimRow, change: ClaimRowChange): void
  remove(row: ClaimRow): void
  /** The last number given out; `setCounter` changes it. One counter for the whole store. */
  counter(): number
  setCounter(counter: number): void
  pin(resource: string): Pin | undefined
  setPin(resource: string, pin: Pin | null): void
}

/** A state value as an embedded store keeps it. */
export interface StateRow {
  readonly value: string
  readonly version: number
  /** null: it stays until it is deleted. */
  readonly expires: number | null
}

/** Where an embedded store keeps its states and their watchers. */
export interface StateRows {
  state(key: string): StateRow | undefined
  /** The keys at or after `from`, in order, at most so many. */
  stateKeys(from: string, most: number): string[]
  /** null removes. */
  setState(key: string, row: StateRow | null): void
  watch(key: string, client: string): void
  /** Removes the watchers of a key and returns them: each is told once. */
  takeWatchers(key: string): string[]
}
