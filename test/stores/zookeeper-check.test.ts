import { expect, it, onTestFinished } from 'vitest'
import { CREATOR_ALL, digestAcl, Perms, ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { type Finding, Holdfast } from '../../src/index.js'
import { type ZooKeeperStoreOptions, zookeeper } from '../../src/stores/zookeeper/index.js'
import { rejectsWith } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import {
  startZooKeeper,
  startZooKeeperEnsemble,
  type ZooKeeperServer,
  type ZooKeeperServerOptions,
} from '../servers/zookeeper.js'

const OPTIONS = { sessionTimeout: '20s', tick: '200ms' } as const
const AUTH = [{ scheme: 'digest', credentials: 'app:secret' }]

/** What `locks.check()` says, by what it is about. */
async function check(servers: string, options: ZooKeeperStoreOptions = {}): Promise<Record<string, Finding>> {
  await using locks = new Holdfast(zookeeper(servers, { ...OPTIONS, ...options }), { storeTimeout: '60s' })
  return Object.fromEntries((await locks.check()).map((finding) => [finding.about, finding]))
}

async function server(options?: ZooKeeperServerOptions): Promise<ZooKeeperServer> {
  const started = await startZooKeeper(options)
  onTestFinished(() => started.stop())
  return started
}

async function client(address: string, auth = AUTH): Promise<ZooKeeperClient> {
  const zk = new ZooKeeperClient(address, { auth })
  onTestFinished(() => zk.close())
  return zk
}

describeOn('zookeeper', 'a look at a live ZooKeeper', () => {
  it('is content with three servers that are all named, and nodes of one’s own; and leaves nothing there', async () => {
    const ensemble = await startZooKeeperEnsemble()
    onTestFinished(() => ensemble.stop())
    const findings = await check(ensemble.address, { auth: AUTH, acl: CREATOR_ALL })
    expect(Object.keys(findings)).toEqual([
      ...['ensemble', 'address', 'session', 'latency', 'version', 'permissions', 'access'],
    ])
    // How long a write takes here is this machine's matter.
    for (const finding of Object.values(findings).filter(({ about }) => about !== 'latency'))
      expect(finding, finding.text).toMatchObject({ level: 'fine' })
    expect(findings['ensemble']?.text).toBe('3 servers vote; 1 of them may fail.')
    const zk = await client(ensemble.address)
    await zk.sync()
    expect((await zk.getChildren('/holdfast/default/lines')).children).toEqual([])
    expect((await zk.getChildren('/holdfast/default/states')).children).toEqual([])
    const [one] = ensemble.members
    expect((await check(one?.address ?? ''))['address']).toMatchObject({
      level: 'risk',
      text: expect.stringContaining('1 of the 3 servers'),
    })
  })

  it('names a single server and nodes that are open to everybody as risks, below a chroot, too', async () => {
    const { address } = await server()
    await (await client(address)).create('/app')
    for (const servers of [address, `${address}/app`]) {
      const { ensemble, access, permissions } = await check(servers)
      expect(ensemble).toMatchObject({ level: 'risk', text: expect.stringContaining('Run three') })
      expect(access).toMatchObject({ level: 'risk', text: expect.stringContaining('below /holdfast,') })
      expect(permissions).toMatchObject({ level: 'fine' })
    }
  })

  it('names a session that is not what was asked for, and one that is too short for the tick', async () => {
    const { address } = await server({ config: { maxSessionTimeout: '5000' } })
    expect((await check(address))['session']).toMatchObject({
      level: 'risk',
      text: expect.stringMatching(/20000 ms were asked for.* 5000 ms.*maxSessionTimeout/),
    })
    expect((await check(address, { sessionTimeout: '5s' }))['session']).toMatchObject({ level: 'fine' })
    expect((await check(address, { sessionTimeout: '5s', tick: '3s' }))['session']).toMatchObject({
      level: 'fault',
      text: expect.stringContaining('option tick'),
    })
  })

  it('finds nodes closed to strangers where the URL has a user', async () => {
    const { address } = await server()
    const url = `zookeeper://app:s%40cret@${address}?sessionTimeout=20s&tick=200ms`
    await using locks = await Holdfast.open(url, { storeTimeout: '60s' })
    await locks.mutex('door').run(() => {})
    const { access, permissions } = Object.fromEntries(
      (await locks.check()).map((each) => [each.about, each]),
    )
    expect(access).toMatchObject({ level: 'fine' })
    expect(permissions).toMatchObject({ level: 'fine' })
    const lines = '/holdfast/default/lines'
    const stranger = await client(address)
    await expect(stranger.getChildren(lines)).rejects.toMatchObject({ code: 'NO_AUTH' })
    const user = await client(address, [{ scheme: 'digest', credentials: 'app:s@cret' }])
    await user.getChildren(lines)
  })

  it('says what is not permitted', async () => {
    const { address } = await server()
    const zk = await client(address)
    await zk.create('/mine', { acl: [digestAcl('app', 'secret'), digestAcl('guest', 'guest', Perms.read)] })
    const guest = [{ scheme: 'digest', credentials: 'guest:guest' }]
    expect((await check(address, { root: '/mine', auth: guest }))['permissions']).toMatchObject({
      level: 'fault',
      text: expect.stringContaining('NO_AUTH'),
    })
    expect((await check(address, { root: '/mine', auth: AUTH }))['permissions']).toMatchObject({
      level: 'fine',
    })
  })

  it('looks at lines that are shared with Curator, too', async () => {
    const { address } = await server()
    const { permissions, access } = await check(address, { shared: 'curator', root: '/locks' })
    expect(permissions).toMatchObject({ level: 'fine' })
    expect(access).toMatchObject({ level: 'risk', text: expect.stringContaining('below /locks,') })
  })

  it('fails where every connection is refused, and says so', async () => {
    // A port that nobody has.
    await using locks = new Holdfast(zookeeper('127.0.0.1:1', { sessionTimeout: '1s' }), {
      storeTimeout: '4s',
    })
    const calls: Promise<unknown>[] = [locks.check(), locks.mutex('door').acquire()]
    for (const error of await Promise.all(calls.map((call) => rejectsWith('STORE_UNAVAILABLE', call))))
      expect(error.message).toContain('ECONNREFUSED')
  })
})
