import type { Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { StateChange, StateOutcome, StateValue, StateView } from '../../contract/store.js'
import type { Member } from './member.js'
import type { Members } from './members.js'

/** How long a member keeps a cell after the end of its value. */
const KEPT_MS = 86_400_000
/** How often to begin again where other clients write at the same time. */
const MOST_ROUNDS = 8
/** How often a read looks whether a write that is under way has become complete. */
const MOST_LOOKS = 3
const LONGEST_PAUSE_MS = 10

/** What a member keeps of a state. Ballots are unique: two writers never get one accepted. */
interface Cell {
  /** No lower ballot is accepted any more. */
  readonly promised: number
  /** The ballot of the value; 0: there is none. */
  readonly accepted: number
  /** The version of the value, which stays when a read completes a write. */
  readonly version: number
  readonly value: string | null
  /** When the value ends, by the wall clock of its writer; null: when it is deleted. */
  readonly endsAt: number | null
  /**
   * How long members keep the cell; null: for ever. Never shorter than that of the cell before: a
   * member that has missed this one must not bring the old value back.
   */
  readonly keptMs: number | null
}

const EMPTY: Cell = { promised: 0, accepted: 0, version: 0, value: null, endsAt: null, keptMs: KEPT_MS }

/** A cell, and the member's own version of it. */
interface Seen {
  readonly cell: Cell
  readonly memberVersion: number | null
}

type Seens = ReadonlyMap<Member, Seen>

/**
 * States on a majority, by the rules of Paxos: a ballot is promised by a majority before a value is
 * accepted by it. The members' own compare-and-set keeps the promises.
 */
export class Register {
  readonly #env: Env
  readonly #members: Members

  constructor(env: Env, members: Members) {
    this.#env = env
    this.#members = members
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    for (let look = 1; ; look++) {
      const chosen = this.#chosen(await this.#look(key, watch))
      if (chosen) return this.#stateOf(chosen)
      if (look === MOST_LOOKS) break
      // A write is under way: to complete it would interrupt its writer.
      await this.#pause()
    }
    // It was left half-done: it is completed, or a later read could go back.
    return this.#round(key, (cell) => cell)
  }

  /** A key that a member does not list is empty there. */
  async list(prefix: string): Promise<StateView[]> {
    const lists = await this.#members.gather((member) =>
      member.call(async (connection) => {
        const states = new Map<string, StateView>()
        for await (const state of connection.states(prefix)) states.set(state.key, state)
        return states
      }),
    )
    const keys = new Set([...lists.values()].flatMap((states) => [...states.keys()]))
    const found: StateView[] = []
    for (const key of keys) {
      const seen = new Map([...lists].map(([member, states]) => [member, parse(states.get(key) ?? null)]))
      const chosen = this.#chosen(seen)
      const state = chosen ? this.#stateOf(chosen) : await this.read(key, false)
      if (state) found.push({ key, ...state })
    }
    return found
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    let written = false
    const current = await this.#round(key, (before, ballot) => {
      written = (this.#stateOf(before)?.version ?? null) === expect
      if (!written) return before
      const endsAt = retentionMs === null ? null : this.#env.wallMs() + retentionMs
      const keptMs = longer(before.keptMs, retentionMs === null ? null : retentionMs + KEPT_MS)
      return { promised: ballot, accepted: ballot, version: ballot, value, endsAt, keptMs }
    })
    return { written, current }
  }

  /** Changes the value as one step; rejects if it is not known whether it was changed. */
  async #round(key: string, change: (cell: Cell, ballot: number) => Cell): Promise<StateValue | null> {
    for (let round = 1; ; round++) {
      const seen = await this.#look(key, false)
      const ballot = this.#ballotAbove(seen)
      const promised = await this.#writeAll(key, seen, (cell) => ({ ...cell, promised: ballot }))
      if (promised.size >= this.#members.majority) {
        const before = newest(promised)
        const after = change(before, ballot)
        // Nothing to change, and a majority has it already.
        if (after === before && this.#chosen(promised)) return this.#stateOf(before)
        const accepted = await this.#writeAll(key, promised, () => ({
          ...after,
          promised: ballot,
          accepted: ballot,
        }))
        if (accepted.size < this.#members.majority) throw interrupted()
        return this.#stateOf(after)
      }
      if (round >= MOST_ROUNDS) throw interrupted()
      await this.#pause()
    }
  }

  async #look(key: string, watch: boolean): Promise<Seens> {
    const states = await this.#members.gather((member) =>
      member.call((connection) => connection.read(key, watch)),
    )
    const seen = new Map<Member, Seen>()
    for (const [member, state] of states) seen.set(member, parse(state))
    return seen
  }

  /** The cell that a majority has accepted; null: none is known. */
  #chosen(seen: Seens): Cell | null {
    const cell = newest(seen)
    let count = 0
    for (const other of seen.values()) if (other.cell.accepted === cell.accepted) count++
    return count >= this.#members.majority ? cell : null
  }

  /** Above all that was seen; and above those of a cell that a member no longer keeps. */
  #ballotAbove(seen: Seens): number {
    let highest = Math.floor(this.#env.wallMs() * 1000)
    for (const { cell } of seen.values()) highest = Math.max(highest, cell.promised, cell.accepted)
    return highest + 1
  }

  /** Gives the members on which nobody came between. */
  async #writeAll(key: string, seen: Seens, change: (cell: Cell) => Cell): Promise<Seens> {
    const written = new Map<Member, Seen>()
    const write = async (member: Member): Promise<boolean> => {
      const before = seen.get(member)
      if (!before) return false
      const cell = change(before.cell)
      const { memberVersion: expect } = before
      const value = JSON.stringify(cell)
      const outcome = await member.call((connection) =>
        connection.write({ key, expect, value, retentionMs: cell.keptMs }),
      )
      if (outcome.written) written.set(member, { cell, memberVersion: outcome.current?.version ?? null })
      return outcome.written
    }
    await this.#members.tryEach(seen.keys(), write)
    // Without those that come later.
    return new Map(written)
  }

  #stateOf({ value, version, endsAt }: Cell): StateValue | null {
    const isOver = endsAt !== null && this.#env.wallMs() >= endsAt
    return value === null || isOver ? null : { value, version }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#env.timer(LONGEST_PAUSE_MS * this.#env.random(), resolve, { keepAlive: true })
    })
  }
}

function longer(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(a, b)
}

function parse(state: StateValue | null): Seen {
  if (!state) return { cell: EMPTY, memberVersion: null }
  // What a client without the quorum wrote is no vote. The version lets a write replace it.
  return { cell: cellIn(state.value) ?? EMPTY, memberVersion: state.version }
}

/** null: no cell, but a state that was written without the quorum, or a damaged one. */
function cellIn(text: string): Cell | null {
  try {
    const cell = JSON.parse(text)
    const { promised, accepted, version, value, endsAt, keptMs } = cell
    const isCell =
      [promised, accepted, version].every(Number.isSafeInteger) &&
      (value === null || typeof value === 'string') &&
      [endsAt, keptMs].every((time) => time === null || typeof time === 'number')
    return isCell ? cell : null
  } catch {
    return null
  }
}

function newest(seen: Seens): Cell {
  let cell = EMPTY
  for (const other of seen.values()) if (other.cell.accepted > cell.accepted) cell = other.cell
  return cell
}

function interrupted(): HoldfastError {
  const message =
    'Other clients, or failing members of the quorum, came between; the value may have been written'
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'quorum', retryable: true })
}
