import type { StateChange, StateOutcome, StateValue, StateView } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener } from '../../drivers/zookeeper/index.js'
import { decode, encode } from '../shared/encoding.js'
import { hasCode } from './failures.js'
import type { ZooKeeperSpace } from './space.js'

/** The data of a state's node. */
interface StateData {
  readonly value: string
  /**
   * The name of the node's only child, which is new for each value: a version alone could repeat
   * after a delete.
   */
  readonly guard: string
  /** Wall clock; null: never. */
  readonly endsAtMs: number | null
}

const MOST_WRITES = 10
const CONFLICTS = ['NO_NODE', 'NODE_EXISTS', 'BAD_VERSION', 'NOT_EMPTY'] as const

/** The states of one space. */
export class ZooKeeperStates {
  readonly #space: ZooKeeperSpace
  /** By key, while it is watched. */
  readonly #listeners = new Map<string, WatchListener>()
  /** Not wanted any more; the answer that registers it may still come. */
  readonly #unwanted = new WeakSet<WatchListener>()

  constructor(space: ZooKeeperSpace) {
    this.#space = space
  }

  /** The session has ended, and its watches with it. */
  forgetWatches(): void {
    this.#listeners.clear()
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const listener = watch ? this.#listener(key) : undefined
    const found = await this.#find(key, listener)
    if (listener && this.#unwanted.has(listener)) this.#space.session.zk.unwatch(this.#path(key), listener)
    return found && this.#isLive(found.data) ? toValue(found) : null
  }

  /** The server's watch stays until it fires or the connection ends. */
  unwatch(key: string): void {
    const listener = this.#listeners.get(key)
    if (!listener) return
    this.#listeners.delete(key)
    this.#unwanted.add(listener)
    this.#space.session.zk.unwatch(this.#path(key), listener)
  }

  async list(prefix: string): Promise<StateView[]> {
    const { session, statesPath } = this.#space
    const names = await session.zk.getChildren(statesPath).then(
      ({ children }) => children,
      (error) => {
        if (hasCode(error, 'NO_NODE')) return []
        throw error
      },
    )
    const keys = names
      .map(decode)
      .filter((key) => key !== null)
      .filter((key) => key.startsWith(prefix))
    const states = await Promise.all(keys.map(async (key) => ({ key, state: await this.read(key, false) })))
    return states.flatMap(({ key, state }) => (state ? [{ key, ...state }] : []))
  }

  async write(change: StateChange): Promise<StateOutcome> {
    for (let count = 1; ; count++) {
      const found = await this.#find(change.key)
      const before = found && this.#isLive(found.data) ? toValue(found) : null
      if ((before?.version ?? null) !== change.expect) return { written: false, current: before }
      if (before === null && change.value === null) return { written: true, current: null }
      try {
        return await this.#replace(change, found)
      } catch (error) {
        const isConflict = CONFLICTS.some((code) => hasCode(error, code))
        if (!isConflict || count === MOST_WRITES) throw error
        // Another client wrote meanwhile, or this is the first state of the space.
        if (hasCode(error, 'NO_NODE')) await this.#space.session.makePath(this.#space.statesPath)
      }
    }
  }

  async #replace(change: StateChange, found: Found | null): Promise<StateOutcome> {
    const { session, env } = this.#space
    const { key, value, retentionMs } = change
    const path = this.#path(key)
    const remove: MultiOperation[] = found
      ? [
          { type: 'delete', path: `${path}/${found.data.guard}` },
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
    const { zxid } = await session.zk.multi([...remove, ...add])
    return { written: true, current: value === null ? null : { value, version: Number(zxid) } }
  }

  async #find(key: string, watch?: WatchListener): Promise<Found | null> {
    const { session } = this.#space
    const path = this.#path(key)
    const options = { watch }
    for (;;) {
      try {
        const { data, stat } = await session.zk.getData(path, options)
        const state = parseState(data)
        return state && { data: state, stat }
      } catch (error) {
        if (!hasCode(error, 'NO_NODE')) throw error
      }
      if (!watch || (await session.zk.exists(path, options)).stat === null) return null
    }
  }

  /** One listener for each key: the client is told once. */
  #listener(key: string): WatchListener {
    const known = this.#listeners.get(key)
    if (known) return known
    const listener = (): void => {
      this.#listeners.delete(key)
      this.#space.push({ type: 'state', key })
    }
    this.#listeners.set(key, listener)
    return listener
  }

  #isLive({ endsAtMs }: StateData): boolean {
    return endsAtMs === null || endsAtMs > this.#space.env.wallMs()
  }

  #path(key: string): string {
    return `${this.#space.statesPath}/${encode(key)}`
  }
}

interface Found {
  readonly data: StateData
  readonly stat: Stat
}

/** null: another application's node. */
function parseState(bytes: Buffer): StateData | null {
  try {
    const data = JSON.parse(String(bytes))
    return typeof data?.value === 'string' && typeof data.guard === 'string' ? data : null
  } catch {
    return null
  }
}

/** Each value has a new node, so the transaction that made it is a version that never repeats. */
function toValue({ data, stat }: Found): StateValue {
  return { value: data.value, version: Number(stat.czxid) }
}
