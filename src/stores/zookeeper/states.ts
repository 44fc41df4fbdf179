import type { StateChange, StateOutcome, StateValue } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener } from '../../drivers/zookeeper/index.js'
import { hasCode } from './failures.js'
import { encode } from './names.js'
import type { Places } from './places.js'

/** A state as its node keeps it. */
interface Kept {
  readonly value: string
  /** Names the node's only child, which no later node of that path has: a version alone could be the same again after a delete. */
  readonly guard: string
  /** Wall clock; null: until it is deleted. */
  readonly endsAtMs: number | null
}

const MOST_ATTEMPTS = 10
const CONFLICTS = ['NO_NODE', 'NODE_EXISTS', 'BAD_VERSION', 'NOT_EMPTY'] as const

/** The states of one space. */
export class States {
  readonly #places: Places
  /** Of the keys that are watched. */
  readonly #listeners = new Map<string, WatchListener>()

  constructor(places: Places) {
    this.#places = places
  }

  /** The watches were of the session that has ended. */
  forgetWatches(): void {
    this.#listeners.clear()
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const found = await this.#find(key, watch)
    return found && this.#isLive(found.kept) ? toValue(found) : null
  }

  async write(change: StateChange): Promise<StateOutcome> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#find(change.key, false)
      const before = found && this.#isLive(found.kept) ? toValue(found) : null
      if ((before?.version ?? null) !== change.expect) return { written: false, current: before }
      if (before === null && change.value === null) return { written: true, current: null }
      try {
        return await this.#replace(change, found)
      } catch (error) {
        const isConflict = CONFLICTS.some((code) => hasCode(error, code))
        if (!isConflict || attempt === MOST_ATTEMPTS) throw error
        // Somebody else wrote meanwhile, or this is the first state of the space.
        if (hasCode(error, 'NO_NODE')) await this.#places.session.makePath(this.#places.states)
      }
    }
  }

  async #replace(change: StateChange, found: Found | null): Promise<StateOutcome> {
    const { session, env } = this.#places
    const { key, value, retentionMs } = change
    const path = this.#path(key)
    const remove: MultiOperation[] = found
      ? [
          { type: 'delete', path: `${path}/${found.kept.guard}` },
          { type: 'delete', path, version: found.stat.version },
        ]
      : []
    const guard = env.id()
    const endsAtMs = retentionMs === null ? null : env.wallMs() + retentionMs
    const data = JSON.stringify({ value, guard, endsAtMs })
    const { acl } = session
    const add: MultiOperation[] =
      value === null
        ? []
        : [
            { type: 'create', path, data, acl },
            { type: 'create', path: `${path}/${guard}`, acl },
          ]
    const { zxid } = await session.write((zk) => zk.multi([...remove, ...add]))
    return { written: true, current: value === null ? null : { value, version: Number(zxid) } }
  }

  async #find(key: string, watch: boolean): Promise<Found | null> {
    const { session } = this.#places
    const path = this.#path(key)
    const options = watch ? { watch: this.#listener(key) } : {}
    for (;;) {
      try {
        const { data, stat } = await session.zk.getData(path, options)
        return { kept: JSON.parse(String(data)), stat }
      } catch (error) {
        if (!hasCode(error, 'NO_NODE')) throw error
      }
      if (!watch || (await session.zk.exists(path, options)).stat === null) return null
    }
  }

  /** The same for all who watch the same key: the client is told once. */
  #listener(key: string): WatchListener {
    const known = this.#listeners.get(key)
    if (known) return known
    const listener = (): void => {
      this.#listeners.delete(key)
      this.#places.push({ type: 'state', key })
    }
    this.#listeners.set(key, listener)
    return listener
  }

  #isLive({ endsAtMs }: Kept): boolean {
    return endsAtMs === null || endsAtMs > this.#places.env.wallMs()
  }

  #path(key: string): string {
    return `${this.#places.states}/${encode(key)}`
  }
}

interface Found {
  readonly kept: Kept
  readonly stat: Stat
}

/** Each value is a node of its own, so the transaction that made it is a version which never comes again. */
function toValue({ kept, stat }: Found): StateValue {
  return { value: kept.value, version: Number(stat.czxid) }
}
