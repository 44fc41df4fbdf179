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
  /** When it lapses: its presence while it waits, its lease while it holds. */
  readonly expires: number
  readonly maxHoldMs: number | null
  /** The highest fence that the claimant had seen, and how many fences it reserves at once: needed when it is promoted later. */
  readonly floor: number
  readonly block: number
  /** When it joined the line, or was granted. */
  readonly since: number
  readonly info: string
}

/** The part of a row that can change while it stands in its line. */
export type ClaimRowChange = Partial<Pick<ClaimRow, 'permits' | 'fence' | 'expires' | 'since' | 'block'>>

/** A capacity that `resize` set, with the one that claimants still declare. */
export interface Pin {
  readonly declared: number
  readonly capacity: number
}

/**
 * Where an embedded store keeps its rows. Synchronous: whoever calls makes each group of calls atomic (one turn of the event
 * loop, one transaction). `Lines` does all the thinking.
 */
export interface ClaimRows {
  /** The rows of a line in order, read lazily. No row is added or removed while it is being read. */
  line(resource: string): Iterable<ClaimRow>
  get(resource: string, id: string): ClaimRow | undefined
  append(row: ClaimRow): void
  /** Puts the row ahead of all others. */
  prepend(row: ClaimRow): void
  /** Puts the row into the place of another one. */
  replace(old: ClaimRow, row: ClaimRow): void
  update(row: ClaimRow, change: ClaimRowChange): void
  remove(row: ClaimRow): void
  /** The last number that the counter gave; `bump` sets it. One counter for everything in the store. */
  counter(): number
  bump(counter: number): void
  pin(resource: string): Pin | undefined
  setPin(resource: string, pin: Pin | null): void
}

/** A state value as an embedded store keeps it. */
export interface StateRow {
  readonly value: string
  readonly version: number
  /** null: kept until it is deleted. */
  readonly expires: number | null
}

/** Where an embedded store keeps its states, and who watches them. */
export interface StateRows {
  state(key: string): StateRow | undefined
  /** null removes. */
  setState(key: string, row: StateRow | null): void
  watch(key: string, client: string): void
  /** The watchers of a key, each of which is told once: they are forgotten by this call. */
  takeWatchers(key: string): string[]
}
