import type { Connection, StateValue } from '../../contract/store.js'
import type { Member } from './member.js'

/** Where the records of members are kept: a space of its own, the same for all clients. */
export const MEMBERS_SPACE = 'holdfast quorum'
const RECORD_KEY = 'member'
/** A set that seems new is founded with all its members; it waits so long for a missing one. */
const FOUNDING_PATIENCE_MS = 10_000
/** How often a record is looked at again that other clients change at the same time. */
const MOST_LOOKS = 10

/**
 * - `founding`: the set is new; it becomes a member when all are founding, or when its wait is over
 * - `rejoining`: it has lost data; it becomes a member when its wait is over
 * - `member`: it votes
 */
type Standing = 'founding' | 'rejoining' | 'member'

/** What a member keeps about itself. */
interface MemberRecord {
  readonly id: string
  /** Names the founding of the set: members of another set have another one. */
  readonly set: string
  readonly standing: Standing
  /** The run of the server that wrote it; null: a restart loses nothing. */
  readonly run: string | null
  /** Names the state that lapses when the wait is over; null: the wait has not begun. */
  readonly wait: string | null
}

/** What a look at one member has shown. */
export interface Sighting {
  readonly member: Member
  readonly connection: Connection
  readonly link: number | undefined
  readonly run: string | null
  record: MemberRecord | null
  version: number | null
}

interface IdentityContext {
  now(): number
  newId(): string
  /** How long a member that lost its data does not vote. */
  readonly waitMs: number
}

/**
 * Decides which members may vote. A member that lost its data must not, until the longest lease is
 * over: it would grant what others hold by its vote.
 */
export class Identity {
  readonly #context: IdentityContext
  /** Since when the set has seemed new, with members that do not answer. */
  #incompleteSince: number | null = null

  constructor(context: IdentityContext) {
    this.#context = context
  }

  /** Reads the record of a member, over a connection in the space of the records. */
  async look(member: Member, connection: Connection): Promise<Sighting> {
    const { origin } = member.connection
    let run: string | null = null
    let link: number | undefined
    // The first call opens the connection. The run must be that of the link that stays.
    do {
      link = origin?.link
      run = (await origin?.run()) ?? null
    } while (origin?.link !== link)
    return { member, connection, link, run, ...parse(await connection.read(RECORD_KEY, false)) }
  }

  /**
   * Moves the records on, as far as these sightings allow. `isWhole`: they are all members of the
   * set. `othersStand`: a member that is not among them votes or has voted.
   */
  async settle(sightings: readonly Sighting[], isWhole: boolean, othersStand: boolean): Promise<void> {
    const isNew = (): boolean => !othersStand && !sightings.some(hasStanding)
    if (isNew() && !isWhole && !this.#isPatienceOver()) return
    if (isWhole) this.#incompleteSince = null
    const mayFound = (): boolean => isWhole && isNew()
    const [first, ...others] = sightings
    // The first one names the set.
    if (first) await this.#register(first, sightings, mayFound)
    await Promise.all(others.map((sighting) => this.#register(sighting, sightings, mayFound)))
    const isFounded = isWhole && (await this.#agreeOnSet(sightings))
    await Promise.all(sightings.map((sighting) => this.#admit(sighting, isFounded)))
  }

  #isPatienceOver(): boolean {
    const now = this.#context.now()
    this.#incompleteSince ??= now
    return now - this.#incompleteSince >= FOUNDING_PATIENCE_MS
  }

  /**
   * Gives a record to a member that has none, or one of an earlier run of its server. A record of
   * an earlier run may be older than the member's last votes: also a founding one has to wait.
   */
  async #register(sighting: Sighting, all: readonly Sighting[], mayFound: () => boolean): Promise<void> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      const { record, run } = sighting
      if (record && record.run === run) return
      await this.#write(sighting, {
        id: record?.id ?? this.#context.newId(),
        set: record?.set ?? smallestSet(all) ?? this.#context.newId(),
        standing: record === null && mayFound() ? 'founding' : 'rejoining',
        run,
        wait: null,
      })
    }
  }

  /**
   * Whether all were founded together: none of them has voted. Clients that found the set at the
   * same time agree on the smallest name.
   */
  async #agreeOnSet(sightings: readonly Sighting[]): Promise<boolean> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      if (!sightings.every(({ record }) => record?.standing === 'founding')) return false
      const set = smallestSet(sightings)
      const other = sightings.find(({ record }) => record?.set !== set)
      if (!other?.record || set === null) return true
      await this.#write(other, { ...other.record, set })
    }
    return false
  }

  /**
   * A member of a founded set may vote, and one whose wait is over. The wait begins when the record
   * is there: if the data is lost in between, the last step finds no record.
   */
  async #admit(sighting: Sighting, isFounded: boolean): Promise<void> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      const { record, run, connection } = sighting
      if (!record || record.standing === 'member' || record.run !== run) return
      const { standing, wait } = record
      if ((isFounded && standing === 'founding') || (wait !== null && (await this.#isOver(sighting, wait))))
        await this.#write(sighting, { ...record, standing: 'member' })
      else if (wait === null)
        await this.#write(sighting, { ...record, wait: await this.#startWait(connection) })
      else return
    }
  }

  async #startWait(connection: Connection): Promise<string> {
    const wait = this.#context.newId()
    await connection.write({
      key: waitKey(wait),
      expect: null,
      value: '1',
      retentionMs: this.#context.waitMs,
    })
    return wait
  }

  async #isOver({ connection }: Sighting, wait: string): Promise<boolean> {
    return (await connection.read(waitKey(wait), false)) === null
  }

  /** Afterwards the sighting shows the record as it is, also if another client wrote it. */
  async #write(sighting: Sighting, record: MemberRecord): Promise<void> {
    const change = { key: RECORD_KEY, expect: sighting.version, retentionMs: null }
    const { current } = await sighting.connection.write({ ...change, value: JSON.stringify(record) })
    Object.assign(sighting, parse(current))
  }
}

/** Whether it may vote: it is a member, and the run of the server that became one answers. */
export function isMember({ record, run }: Sighting): boolean {
  return record?.standing === 'member' && record.run === run
}

function hasStanding({ record }: Sighting): boolean {
  return record !== null && record.standing !== 'founding'
}

function smallestSet(sightings: readonly Sighting[]): string | null {
  const sets = sightings.flatMap(({ record }) => (record ? [record.set] : []))
  return sets.sort()[0] ?? null
}

function waitKey(wait: string): string {
  return `wait ${wait}`
}

function parse(state: StateValue | null): Pick<Sighting, 'record' | 'version'> {
  if (!state) return { record: null, version: null }
  return { record: JSON.parse(state.value) as MemberRecord, version: state.version }
}
