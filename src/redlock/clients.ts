import type { Duration } from '../base/duration.js'
import { invalid } from '../base/errors.js'
import type { Store } from '../contract/store.js'
import { quorum } from '../stores/quorum/index.js'
import { type RedisClient, redis } from '../stores/redis/index.js'

/** One client: that server, Sentinel or Cluster. Several: a majority of them decides. */
export function storeOf(clients: ReadonlySet<RedisClient>, longestDuration: Duration = '10m'): Store {
  const members = Array.from(clients, (client) => redis(client))
  const [first] = members
  if (!first) throw invalid('Redlock must be instantiated with at least one redis client.')
  if (members.length === 1) return first
  if (members.length % 2 === 0)
    throw invalid(
      `Redlock got ${members.length} clients, but a majority needs an odd number: ${members.length} servers survive no more failures than ${members.length - 1}. Give one client, or three, five or seven of independent servers`,
    )
  return quorum(members, { longestLease: longestDuration })
}

/** Ends the connections of the caller's own clients. */
export function quitAll(clients: Iterable<RedisClient>): Promise<unknown[]> {
  return Promise.all(Array.from(clients, quit))
}

function quit(client: RedisClient): unknown {
  const { close, quit } = client as { close?(): unknown; quit?(): unknown }
  // node-redis calls it close, and has deprecated quit.
  const end = 'evalSha' in client ? close : quit
  return end?.call(client)
}
