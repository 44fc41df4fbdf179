import { afterAll, beforeAll } from 'vitest'
import { etcd } from '../../../src/stores/etcd/index.js'
import { runCases, runStrictCases, type Share, type Skips } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

const LEASE = 'the lease of the client bounds every hold'
const CLOSE = 'what a client has ends with its connection, which revokes its lease'

/** Longer than the leases that the cases rely on while the store cannot be reached. */
const TTL = '8s'

export const ETCD_LIMITS = {
  fixedFences: 'fences are revisions of the cluster, which nobody can choose',
} as const

export const ETCD_SKIPS: Skips = {
  'each hold has the lease that was asked for': `${LEASE}, and this case asks for a minute`,
  'extend gives at least that much from now, and never shortens': `${LEASE}, and this case extends by 20 s`,
  'promotion refreshes nothing: only the own pulse of a claim starts its lease': `${LEASE}, and this case wants two minutes`,
  'a hold outlives the connection that took it, and can be renewed through another one': CLOSE,
  'what a closed connection had in lines is left to lapse': CLOSE,
  'the fence is above what the claimant has seen before, even if the store has forgotten it':
    'fences are revisions of the cluster, which no claimant can raise',
}

/** Somewhere to run the suite. */
interface Servers {
  readonly address: string
  stop(): Promise<unknown>
}

/** The conformance suite, each case below a root of its own. */
export function runCasesOnEtcd(
  title: string,
  start: () => Promise<Servers>,
  { share, strict }: { share: Share; strict: Share },
): void {
  describeOn('etcd', title, () => {
    let servers: Servers
    let place = 0
    beforeAll(async () => {
      servers = await start()
    })
    afterAll(() => servers?.stop())

    const subject = {
      name: title,
      ...ETCD_LIMITS,
      async open() {
        const root = `conformance-${place++}/`
        const url = `etcd://${servers.address}?root=${root}&ttl=${TTL}`
        return { store: () => etcd(servers.address, { root, ttl: TTL }), url, dispose: async () => {} }
      },
    }
    runCases(subject, share, ETCD_SKIPS)
    runStrictCases(subject, strict, ETCD_SKIPS)
  })
}
