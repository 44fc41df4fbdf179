import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import type { Store } from '../../../src/contract/store.js'
import { Holdfast } from '../../../src/primitives/holdfast.js'
import { mysql } from '../../../src/stores/mysql/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type QuorumOptions, quorum } from '../../../src/stores/quorum/index.js'
import { redis } from '../../../src/stores/redis/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { runCases, runStrictCases, type Share, type Skips } from '../../conformance/run-cases.js'
import { describeOnQuorum, type MemberKind, type QuorumServers, startQuorum } from '../../servers/quorum.js'
import { spaced } from '../spaced.mjs'
import { membersOf } from './members.mjs'

/** What cannot be done on a quorum, with the reasons. */
export const QUORUM_LIMITS = {
  locksOnly: 'a quorum keeps only locks',
  fixedFences: 'a quorum is no member of a quorum',
} as const
/** The cases that do not fit a quorum. */
export const QUORUM_SKIPS: Skips = {
  'a hold outlives the connection that took it, and can be renewed through another one':
    'the ids that the members know are known to the connection that made them',
  'promotion refreshes nothing: only the own pulse of a claim starts its lease':
    'a client that is promoted asks the other members itself, and they start a full lease',
  'one who waits learns above which number its fence will be':
    'the pushes of a quorum are made in the client, and never late',
}
/**
 * No lease of the cases is longer. A busy machine must not take a member out of the set: what is
 * down is killed, and refuses connections at once.
 */
export const CONFORMANCE_OPTIONS: QuorumOptions = { longestLease: '1h', memberTimeout: '10s' }

interface RunOptions {
  /** The members that are killed when the set is founded, before the first case. */
  down?: readonly number[]
  share: Share
  /** Which of the cases to run in strict order. */
  strict?: Share
}

/**
 * The conformance suite on a set of servers, each case with spaces of its own: the set is founded
 * once. Its clients share the stores of the members, and each has a quorum of its own.
 */
export function runCasesOnQuorum(
  title: string,
  kinds: readonly MemberKind[],
  { down = [], share, strict }: RunOptions,
): void {
  describeOnQuorum(kinds, title, () => {
    let servers: QuorumServers
    let members: readonly Store[]
    beforeAll(async () => {
      servers = await startQuorum(kinds)
      members = membersAt(servers.urls)
      await found(quorum(members, CONFORMANCE_OPTIONS))
      for (const member of down) await servers.kill(member)
    })
    afterAll(() => servers?.stop())

    const subject = {
      name: title,
      ...QUORUM_LIMITS,
      storeModule: new URL('spaced-store.mjs', import.meta.url).href,
      async open() {
        const prefix = `${systemEnv.id()}/`
        return {
          store: () => spaced(quorum(members, CONFORMANCE_OPTIONS), prefix),
          url: JSON.stringify({ urls: servers.urls, options: CONFORMANCE_OPTIONS, prefix }),
          dispose: async () => {},
        }
      },
    }
    runCases(subject, share, QUORUM_SKIPS)
    if (strict) runStrictCases(subject, strict, QUORUM_SKIPS)
  })
}

/** The quorum of these members, through the sources. */
export function storeAt(urls: readonly string[], options: QuorumOptions): Store {
  return quorum(membersAt(urls), options)
}

function membersAt(urls: readonly string[]): Store[] {
  return membersOf(urls, { redis, postgres, mysql, sqlite }, 20)
}

/** All members write down that they belong to the set. */
export async function found(store: Store): Promise<void> {
  const founder = new Holdfast(store)
  await founder.mutex('founding').run(() => {}, { lease: '1s' })
  await founder.close()
}
