import { afterAll, beforeAll } from 'vitest'
import { zookeeper } from '../../../src/stores/zookeeper/index.js'
import { runCases, runStrictCases, type Share, type Skips } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

const SESSION = 'the session bounds every lease'
const CLOSE = 'what a client has ends with its connection, as the session may live on with others'

/** Longer than the leases that the cases rely on while the store cannot be reached. */
const SESSION_TIMEOUT = '8s'

const LONG: Skips = {
  '3000 waiters of one process make no call each while they wait, and are served in order':
    'three thousand nodes take long on a busy machine; npm run test:all runs it',
}

export const ZOOKEEPER_LIMITS = {
  fixedFences: 'fences are transactions of the ensemble, which nobody can choose',
} as const

export const ZOOKEEPER_SKIPS: Skips = {
  'each hold has the lease that was asked for': `${SESSION}, and this case asks for a minute`,
  'extend gives at least that much from now, and never shortens': `${SESSION}, and this case extends by 20 s`,
  'promotion refreshes nothing: only the own pulse of a claim starts its lease': `${SESSION}, and this case wants two minutes`,
  'the store tells a client about its own claims only':
    'who is next finds out by itself; one that leaves at that moment is told nothing',
  'a hold outlives the connection that took it, and can be renewed through another one': CLOSE,
  'what a closed connection had in lines is left to lapse': CLOSE,
  'the fence is above what the claimant has seen before, even if the store has forgotten it':
    'fences are transactions of the ensemble, which no claimant can raise',
  'a holder is told at once that others have begun to wait for it':
    'a watch for each holder would cost more than it saves: its next pulse tells',
  ...(process.env['HOLDFAST_TEST_ALL'] === '1' ? {} : LONG),
}

/** Somewhere to run the suite. */
interface Servers {
  readonly address: string
  stop(): Promise<unknown>
}

/** The conformance suite, each case below a root of its own. */
export function runCasesOnZooKeeper(
  title: string,
  start: () => Promise<Servers>,
  { share, strict }: { share: Share; strict: Share },
): void {
  describeOn('zookeeper', title, () => {
    let servers: Servers
    let place = 0
    beforeAll(async () => {
      servers = await start()
    })
    afterAll(() => servers?.stop())

    const subject = {
      name: title,
      ...ZOOKEEPER_LIMITS,
      async open() {
        const root = `/conformance-${place++}`
        const options = { sessionTimeout: SESSION_TIMEOUT, tick: '200ms', root } as const
        const url = `zookeeper://${servers.address}?root=${root}&sessionTimeout=${SESSION_TIMEOUT}&tick=200ms`
        return { store: () => zookeeper(servers.address, options), url, dispose: async () => {} }
      },
    }
    runCases(subject, share, ZOOKEEPER_SKIPS)
    runStrictCases(subject, strict, ZOOKEEPER_SKIPS)
  })
}
