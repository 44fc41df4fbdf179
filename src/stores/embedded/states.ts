import type { Push, StateChange, StateOutcome, StateValue } from '../../contract/store.js'
import type { StateRow, StateRows } from './rows.js'

export interface EmbeddedStatesContext {
  now(): number
  /** A number that was never given out before. */
  nextVersion(): number
  tell(client: string, news: Push): void
}

/**
 * The state semantics of the store contract, for stores whose rows this process can change
 * atomically.
 */
export class EmbeddedStates {
  readonly #rows: StateRows
  readonly #context: EmbeddedStatesContext

  constructor(rows: StateRows, context: EmbeddedStatesContext) {
    this.#rows = rows
    this.#context = context
  }

  read(client: string, key: string, watch: boolean): StateValue | null {
    if (watch) this.#rows.watch(key, client)
    return this.#current(key)
  }

  write(change: StateChange): StateOutcome {
    const { key, value } = change
    const before = this.#current(key)
    if ((before?.version ?? null) !== change.expect) return { written: false, current: before }
    // Deleting a missing value changes nothing, so no watcher is told.
    if (before === null && value === null) return { written: true, current: null }
    const after = value === null ? null : this.#newRow(value, change.retentionMs)
    this.#rows.setState(key, after)
    for (const client of this.#rows.takeWatchers(key)) this.#context.tell(client, { type: 'state', key })
    return { written: true, current: after && { value: after.value, version: after.version } }
  }

  #newRow(value: string, retentionMs: number | null): StateRow {
    const expires = retentionMs === null ? null : this.#context.now() + retentionMs
    return { value, version: this.#context.nextVersion(), expires }
  }

  #current(key: string): StateValue | null {
    const row = this.#rows.state(key)
    if (!row || (row.expires !== null && row.expires <= this.#context.now())) return null
    return { value: row.value, version: row.version }
  }
}
