import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { leaseForMs } from '../../contract/validity.js'
import { QuorumConnection, type QuorumOptionsInMs } from './connection.js'

/** The options of `quorum`. */
export interface QuorumOptions {
  /**
   * No lease is longer than this, and a member that has lost its data does not vote for so long.
   * The same for all clients. Default: a minute.
   */
  longestLease?: Duration | undefined
  /**
   * A member that is silent for so long is left alone for a while. Default: a second.
   */
  memberTimeout?: Duration | undefined
  /** Time, timers and randomness in place of the machine's, for simulations. */
  env?: Env | undefined
}

const QUORUM_OPTIONS: OptionNames<QuorumOptions> = { longestLease: true, memberTimeout: true, env: true }
const SIZES = [3, 5, 7]
/** The waits of members are a little longer than any lease, by whichever clock. */
const WAIT_FACTOR = 1.05

/**
 * A store made of stores: a lock is held when a majority of the members has granted it, so it
 * survives the loss of a minority. The members are independent servers: Redis, PostgreSQL, MySQL,
 * or a mix.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { quorum } from 'holdfast/quorum'
 * import { redis } from 'holdfast/redis'
 *
 * const members = ['redis://a:6379', 'redis://b:6379', 'redis://c:6379'].map((url) => redis(url))
 * const locks = new Holdfast(quorum(members))
 * await locks.mutex('report').run(async (hold) => console.log('alone, with fence', hold.fence))
 * await locks.close()
 * ```
 */
export function quorum(members: readonly Store[], options: QuorumOptions = {}): Store {
  checkOptions(options, QUORUM_OPTIONS, "{ longestLease: '2m' }")
  checkMembers(members)
  const longestLeaseMs = leaseForMs(toMs(options.longestLease ?? '1m', { name: 'longestLease', minMs: 1 }))
  return new QuorumStore({
    env: options.env ?? systemEnv,
    stores: [...members],
    timeoutMs: toMs(options.memberTimeout ?? '1s', { name: 'memberTimeout', minMs: 1 }),
    longestLeaseMs,
    waitMs: Math.ceil(longestLeaseMs * WAIT_FACTOR),
  })
}

class QuorumStore implements Store {
  readonly name = 'quorum'
  readonly capabilities: Capabilities
  readonly #options: QuorumOptionsInMs

  constructor(options: QuorumOptionsInMs) {
    this.#options = options
    this.capabilities = capabilitiesOf(options.stores)
  }

  connect(client: ClientContext): Connection {
    return new QuorumConnection(this.#options, client)
  }
}

/** What all members can do. */
function capabilitiesOf(stores: readonly Store[]): Capabilities {
  const all = stores.map(({ capabilities }) => capabilities)
  return {
    perHoldLease: true,
    countsPermits: false,
    sharesClaims: false,
    maxBeats: Math.min(...all.map(({ maxBeats }) => maxBeats)),
    maxBlock: Math.min(...all.map(({ maxBlock }) => maxBlock ?? Infinity)),
    get askNextEveryMs() {
      const everyMs = Math.min(...all.map(({ askNextEveryMs }) => askNextEveryMs ?? Infinity))
      return everyMs === Infinity ? null : everyMs
    },
    confirmHandOffs: all.some(({ confirmHandOffs }) => confirmHandOffs === true),
    // Not by a spread, which would read it once and for all.
    get tellsWanted() {
      if (all.some(({ tellsWanted }) => tellsWanted === undefined)) return undefined
      // The first claim that has to wait asks all members that are up, so a majority is enough.
      return all.filter(({ tellsWanted }) => tellsWanted === true).length > all.length / 2
    },
  }
}

function checkMembers(members: readonly Store[]): void {
  if (!Array.isArray(members))
    throw invalid('quorum() takes a list of stores, such as [redis(a), redis(b), redis(c)]')
  if (!SIZES.includes(members.length))
    throw invalid(
      `A quorum has 3, 5 or 7 members, not ${members.length}: an even number survives no more failures than one less`,
    )
  for (const [index, member] of members.entries()) {
    if (typeof member?.connect !== 'function')
      throw invalid(`Member ${index + 1} of the quorum is not a store`)
    if (members.indexOf(member) !== index)
      throw invalid(
        `Members ${members.indexOf(member) + 1} and ${index + 1} of the quorum are the same store`,
      )
    if (member.capabilities.takesFences !== true || !member.capabilities.perHoldLease)
      throw invalid(
        `A ${member.name} store cannot be a member of a quorum; use memory, sqlite, redis, postgres or mysql (a ZooKeeper ensemble or an etcd cluster is a quorum by itself)`,
      )
  }
}
