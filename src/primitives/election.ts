import { hostname } from 'node:os'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { EXCLUSIVE } from '../contract/admit.js'
import { acquireTimeout } from '../engine/limits.js'
import { enter, type LockContext } from './entrance.js'
import { holdOf } from './inside.js'
import { type Leader, Leadership } from './leadership.js'
import { type AcquireOptions, checkOptions, limits } from './options.js'

export interface CampaignOptions extends Omit<AcquireOptions, 'owner'> {
  /** What observers see: the name or address of this candidate. Default: host and process id. */
  id?: string
}

export interface ObserveOptions {
  /** Ends the observation when aborted. */
  signal?: AbortSignal
}

/** So many of the latest leaders are kept, so that an observer that was slow for a moment misses none. */
const REMEMBERED = 16
/** How long the last leaders are remembered after the leader has resigned. */
const RETENTION_MS = 86_400_000

/**
 * Of many candidates one leads, until it resigns or is lost; then the next in line does.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const election = new Holdfast(memory()).election('scheduler')
 * const leadership = await election.campaign({ id: 'node-1' })
 * console.log('leading in term', leadership.term)
 * leadership.signal.addEventListener('abort', () => console.log('no longer the leader'))
 * await leadership.resign()
 * ```
 */
export class Election {
  readonly #context: LockContext
  readonly #key: string
  readonly #won = new Set<Leadership>()
  /** The name of the election. */
  readonly name: string

  /** Made by `locks.election(name)`. */
  constructor(context: LockContext, name: string) {
    this.#context = context
    this.name = checkName(name, 'The name of an election')
    this.#key = checkName(`election:${name}`, 'The name of an election')
  }

  /**
   * Stands in line to lead; resolves when elected. Throws ACQUIRE_TIMEOUT when the wait is over, ABORTED when the signal aborts.
   */
  async campaign(options: CampaignOptions = {}): Promise<Leadership> {
    const { id = `${hostname()}:${process.pid}`, ...rest } = checkOptions(options, "{ id: 'node-1' }")
    if (typeof id !== 'string' || id === '') throw invalid('id must be a non-empty string', this.name)
    const wait = limits(options)
    const kind = { resource: this.#key, permits: EXCLUSIVE, capacity: EXCLUSIVE, isReentrant: false }
    const entrance = await enter(this.#context, kind, { ...rest, label: rest.label ?? id }, wait)
    if (!entrance) throw acquireTimeout(this.name, wait.waitMs)
    const hold = holdOf(this.#context, entrance)
    const leadership = new Leadership(hold, id, () => this.#resign(leadership))
    try {
      await this.#announce({ id, term: hold.fence })
    } catch (error) {
      await hold.release().catch(() => {})
      throw error
    }
    this.#won.add(leadership)
    hold.signal.addEventListener('abort', () => this.#won.delete(leadership))
    return leadership
  }

  /** Gives up every leadership that was won through this object. */
  async resign(): Promise<void> {
    await Promise.all([...this.#won].map((leadership) => leadership.resign()))
  }

  /** Who leads now; null: nobody. By the time you read the answer it may have changed. */
  async leader(): Promise<Leader | null> {
    const { newest, leads } = await this.#look()
    return newest && leads ? newest : null
  }

  /**
   * The present leader, and then every new one, in the order of their terms. Never ends by itself: break out of the loop, or abort
   * the signal.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const election = new Holdfast(memory()).election('scheduler')
   * void election.campaign({ id: 'node-1' })
   * for await (const leader of election.observe()) {
   *   console.log(leader.id, 'leads in term', leader.term)
   *   break
   * }
   * ```
   */
  async *observe(options: ObserveOptions = {}): AsyncGenerator<Leader, void, void> {
    const wait = limits(options)
    const { newest, leads } = await this.#look()
    let seen = newest?.term ?? 0
    if (newest && leads) yield newest
    while (!wait.signal?.aborted) {
      for (const leader of await this.#leadersAfter(seen, wait.signal)) {
        seen = leader.term
        yield leader
      }
    }
  }

  /** Empty: the signal was aborted. */
  async #leadersAfter(seen: number, signal: AbortSignal | undefined): Promise<Leader[]> {
    const isNewer = (leader: Leader): boolean => leader.term > seen
    const { states } = this.#context.engine
    try {
      const value = await states.until(
        this.#key,
        (each) => parse(each).some(isNewer),
        { waitMs: Infinity, signal },
        { kind: 'election', name: this.name },
      )
      return parse(value).filter(isNewer)
    } catch (error) {
      if (signal?.aborted) return []
      throw error
    }
  }

  /** Tells the observers. A leader that was so slow that another leads already tells nobody: its hold is lost anyway. */
  async #announce(leader: Leader): Promise<void> {
    await this.#context.engine.states.update(this.#key, (value) => {
      const leaders = parse(value)
      if ((leaders.at(-1)?.term ?? 0) >= leader.term) return null
      return { value: JSON.stringify([...leaders, leader].slice(-REMEMBERED)), retentionMs: null }
    })
  }

  async #resign(leadership: Leadership): Promise<void> {
    this.#won.delete(leadership)
    // From now on the store may forget who led; a successor writes it anew.
    const forget = (value: string | null): { value: string; retentionMs: number } | null =>
      parse(value).at(-1)?.term === leadership.term
        ? { value: value ?? '[]', retentionMs: RETENTION_MS }
        : null
    await this.#context.engine.states.update(this.#key, forget).catch(() => {})
  }

  /** The last leader that was announced, and whether it still leads. */
  async #look(): Promise<{ newest: Leader | undefined; leads: boolean }> {
    const { engine } = this.#context
    const newest = parse(await engine.states.read(this.#key)).at(-1)
    const line = await engine.line(this.#key)
    const leads = line?.claims.some(({ fence }) => fence !== null && fence === newest?.term) ?? false
    return { newest, leads }
  }
}

function parse(value: string | null): Leader[] {
  return value === null ? [] : (JSON.parse(value) as Leader[])
}
