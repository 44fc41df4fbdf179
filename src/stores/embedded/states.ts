import type { Push, StateChange, StateOutcome, StateValue, StateView } from '../../contract/store.js'
import type { StateRow, StateRows } from './rows.js'

export interface EmbeddedStatesContext {
  now(): number
  /** A number that was never given out before. */
  nextVersion(): number
  tell(client: string, news: Push): void
}

/** The lowest character of stored text: a key with it sorts right behind that key. */
const JUST_AFTER = '\x01'

/** A part of a listing. */
export interface StatePage {
  readonly states: StateView[]
  /** Where to go on; null: that was all. */
  readonly next: string | null
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

  /** The states at or after `from` whose keys begin with the prefix. */
  page(prefix: string, from: string, most: number): StatePage {
    const keys = this.#rows.stateKeys(from, most)
    const states = keys
      .filter((key) => key.startsWith(prefix))
      .flatMap((key) => {
        const state = this.#current(key)
        return state ? [{ key, ...state }] : []
      })
    const last = keys.at(-1)
    const isAll = last === undefined || keys.length < most || !last.startsWith(prefix)
    return { states, next: isAll ? null : last + JUST_AFTER }
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
