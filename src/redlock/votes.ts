import type { RedisClient } from '../stores/redis/index.js'

/** What one server said to an operation. */
export type ClientExecutionResult =
  | { readonly client: RedisClient; readonly vote: 'for'; readonly value: number }
  | { readonly client: RedisClient; readonly vote: 'against'; readonly error: Error }

/** What the servers said to one attempt of an operation. */
export interface ExecutionStats {
  /** How many clients there are. */
  readonly membershipSize: number
  /** How many of them make a majority. */
  readonly quorumSize: number
  /** The clients that agreed: all of them, if the operation succeeded. */
  readonly votesFor: Set<RedisClient>
  /** The clients that did not, each with the reason: all of them, if the operation failed. */
  readonly votesAgainst: Map<RedisClient, Error>
}

/** What an operation leads to. */
export interface ExecutionResult {
  /** What the servers said: here always one attempt. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>
}

/**
 * The votes on an operation that went well, or failed. Holdfast decides for all servers together,
 * so they all have the same vote.
 */
export function votesOf(
  clients: ReadonlySet<RedisClient>,
  failure: Error | null,
): ReadonlyArray<Promise<ExecutionStats>> {
  const all = [...clients]
  const stats: ExecutionStats = {
    membershipSize: all.length,
    quorumSize: Math.floor(all.length / 2) + 1,
    votesFor: new Set(failure ? [] : all),
    votesAgainst: new Map(failure ? all.map((client) => [client, failure]) : []),
  }
  return [Promise.resolve(stats)]
}
