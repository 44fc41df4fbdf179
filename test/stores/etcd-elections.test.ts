import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { type EtcdStoreOptions, etcd } from '../../src/stores/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { EtcdPeer } from './etcd/peers.js'

/** The names that one election has on both sides. */
const NAMES: { options: EtcdStoreOptions; ours: string; theirs: string }[] = [
  { options: {}, ours: 'first', theirs: 'holdfast/default/lines/election%3Afirst' },
  { options: { shared: 'etcdctl' }, ours: 'second', theirs: 'election:second' },
]

describeOn('etcd', 'one election with etcdctl elect', () => {
  let server: EtcdServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startEtcd()
  })
  afterAll(() => server?.stop())
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })

  function start(...args: readonly string[]): EtcdPeer {
    const peer = new EtcdPeer(['etcdctl', '--endpoints', server.address, 'elect', ...args])
    endings.push(() => peer.signal('SIGKILL'))
    return peer
  }

  async function candidates(theirs: string): Promise<number> {
    const keys = await server.ctl('get', '--prefix', '--keys-only', `${theirs}/`)
    return keys.split('\n').filter((line) => line !== '').length
  }

  it.each(NAMES)('$theirs: leaders exclude each other, in turn', async ({ options, ours, theirs }) => {
    const locks = new Holdfast(etcd(server.address, { ttl: '20s', ...options }))
    endings.push(() => locks.close())
    const election = locks.election(ours)
    const first = await election.campaign({ id: 'node-1' })
    const peer = start(theirs, 'peer')
    await eventually('two candidates', async () => (await candidates(theirs)) === 2)
    expect(await election.leader()).toEqual({ id: 'node-1', term: first.term })
    expect(peer.said).toBe('')
    // They see that somebody leads, but not who: the value is our claim.
    const listener = start('--listen', theirs)
    await listener.says('"id":')
    await first.resign()
    await peer.says('peer')
    const second = election.campaign({ id: 'node-2', wait: '1m' })
    await eventually('two candidates', async () => (await candidates(theirs)) === 2)
    expect(await election.leader()).not.toMatchObject({ id: 'node-2' })
    const { elections } = await locks.overview()
    expect(elections.find(({ name }) => name === ours)?.candidates).toHaveLength(1)
    peer.signal('SIGINT')
    const leadership = await second
    expect(leadership.term).toBeGreaterThan(first.term)
    await leadership.resign()
  })
})
