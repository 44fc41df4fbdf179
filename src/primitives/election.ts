import { hostname } from 'node:os'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { OptionNames } from '../base/options.js'
import { type Limits, limitsLeft } from '../calls/limits.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { Hold } from './hold.js'
import { timeoutWithHolder } from './holder.js'
import { type Leader, Leadership } from './leadership.js'
import { type AcquireOptions, type HoldOptions, limits } from './options.js'
import { enter, type LockContext, released } from './reentry.js'
import { resourceView } from './views.js'

/** The options of `campaign`. `lease` is how long a leader that died stays leader. */
export interface CampaignOptions extends Omit<AcquireOptions, 'owner' | 'maxWaiters'> {
  /** What observers see: the name or address of this candidate. Default: host and process id. */
  id?: string | undefined
}

/** The options of `observe`. */
export interface ObserveOptions {
  /** Ends the observation when aborted. */
  signal?: AbortSignal | undefined
}

const CAMPAIGN_OPTIONS: OptionNames<CampaignOptions> = {
  id: true,
  wait: true,
  signal: true,
  lease: true,
  maxHold: true,
  label: true,
}
const OBSERVE_OPTIONS: OptionNames<ObserveOptions> = { signal: true }

/** How many of the latest leaders are kept, for observers that fell behind. */
const REMEMBERED = 100
/** A leader as it is written down. */
interface Announced extends Leader {
  /** When it was elected, by its wall clock: for people. */
  readonly at?: number
}

/** How long they are kept. The line itself says who leads now. */
const RETENTION_MS = 30 * 86_400_000

/**
 * One of many candidates leads, until it resigns or is lost. Then the next in line leads.
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
  /** The name of the election. */
  readonly name: string

  /** Made by `locks.election(name)`. */
  constructor(context: LockContext, name: string) {
    this.#context = context
    this.name = checkName(name, 'The name of an election')
    this.#key = checkName(`election:${name}`, 'The name of an election')
  }

  /**
   * Waits in line to lead; resolves when elected. Throws ACQUIRE_TIMEOUT when the wait is over,
   * ABORTED when the signal aborts.
   */
  async campaign(options: CampaignOptions = {}): Promise<Leadership> {
    const wait = limits(options, CAMPAIGN_OPTIONS)
    const { id = `${hostname()}:${process.pid}`, ...rest } = options
    if (typeof id !== 'string' || id === '') throw invalid('id must be a non-empty string', this.name)
    const { env } = this.#context.engine
    const deadline = env.now() + wait.waitMs
    for (let left = wait; ; left = limitsLeft(wait, deadline, env.now())) {
      const leadership = await this.#stand({ ...rest, owner: id }, id, left)
      if (leadership) return leadership
    }
  }

  /** null: elected, but lost before the announcement. */
  async #stand(options: HoldOptions, id: string, wait: Limits): Promise<Leadership | null> {
    const { leaderships } = this.#context
    const kind = {
      resource: this.#key,
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      isReentrant: false,
      endsAtClose: true,
      primitive: 'election',
    } as const
    const entry = await enter(this.#context, kind, options, wait)
    if (!entry) throw await timeoutWithHolder(this.#context, this.#key, wait.waitMs)
    const end = (): void => void leaderships.delete(leadership)
    // Not watched for garbage collection: the client keeps it, and the watch would never let it go.
    const hold = new Hold(this.#context.engine, entry, end)
    const leadership = new Leadership(hold, id)
    try {
      await this.#announce({ id, term: hold.fence })
    } catch (error) {
      await released(this.#context.engine, () => hold.release())
      throw error
    }
    if (!hold.isValid) return null
    leaderships.add(leadership)
    hold.signal.addEventListener('abort', end)
    return leadership
  }

  /** Gives up every leadership of this name that this client has. */
  async resign(): Promise<void> {
    const mine = [...this.#context.leaderships].filter(({ hold }) => hold.resource === this.#key)
    await Promise.all(mine.map((leadership) => leadership.resign()))
  }

  /** The present leader, or null. By the time you read the answer it may have changed. */
  async leader(): Promise<Leader | null> {
    const { engine, operator } = this.#context
    const line = await operator.line(this.#key)
    const holder = line && resourceView(line, engine.env).holders[0]
    return holder ? { id: holder.owner, term: holder.fence } : null
  }

  /**
   * The present leader, then every new one, in the order of their terms. It never ends by itself:
   * break out of the loop, or abort the signal.
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
    const wait = limits(options, OBSERVE_OPTIONS)
    const announced = parse(await this.#context.engine.states.read(this.#key)).at(-1)
    const present = await this.leader()
    let seen = present?.term ?? announced?.term ?? 0
    if (present) yield present
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
      return parse(value)
        .filter(isNewer)
        .map(({ id, term }) => ({ id, term }))
    } catch (error) {
      if (signal?.aborted) return []
      throw error
    }
  }

  /** Tells the observers, unless a later leader was announced: then this hold is lost anyway. */
  async #announce(leader: Leader): Promise<void> {
    const { states, env } = this.#context.engine
    await states.update(this.#key, (value) => {
      const leaders = parse(value)
      if ((leaders.at(-1)?.term ?? 0) >= leader.term) return null
      const announced = { ...leader, at: env.wallMs() }
      return { value: JSON.stringify([...leaders, announced].slice(-REMEMBERED)), retentionMs: RETENTION_MS }
    })
  }
}

function parse(value: string | null): Announced[] {
  return value === null ? [] : (JSON.parse(value) as Announced[])
}
