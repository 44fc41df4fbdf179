import { expect, it, onTestFinished } from 'vitest'
import { type Finding, Holdfast } from '../../src/index.js'
import { type EtcdStoreOptions, etcd } from '../../src/stores/etcd/index.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd, startEtcdCluster } from '../servers/etcd.js'

/** What `locks.check()` says, by what it is about. */
async function check(servers: string, options: EtcdStoreOptions = {}): Promise<Record<string, Finding>> {
  await using locks = new Holdfast(etcd(servers, { requestTimeout: '20s', ...options }), {
    storeTimeout: '60s',
  })
  return Object.fromEntries((await locks.check()).map((finding) => [finding.about, finding]))
}

async function server(): Promise<EtcdServer> {
  const started = await startEtcd()
  onTestFinished(() => started.stop())
  return started
}

describeOn('etcd', 'a look at a live etcd', () => {
  it('is content with three servers that are all named, and leaves nothing there', async () => {
    const cluster = await startEtcdCluster()
    onTestFinished(() => cluster.stop())
    const findings = await check(cluster.address)
    expect(Object.keys(findings)).toEqual([
      ...['version', 'cluster', 'address', 'alarms', 'lease', 'latency', 'permissions'],
    ])
    // How fast a majority answers here is this machine's matter.
    for (const finding of Object.values(findings).filter(({ about }) => about !== 'latency'))
      expect(finding, finding.text).toMatchObject({ level: 'fine' })
    expect(findings['cluster']?.text).toBe('3 servers vote; 1 of them may fail.')
    const [one] = cluster.members
    expect(await one?.ctl('get', '--prefix', '--keys-only', 'holdfast/')).toBe('')
    expect((await check(one?.address ?? ''))['address']).toMatchObject({
      level: 'risk',
      text: expect.stringContaining('1 of the 3 servers'),
    })
  })

  it('names a single server as a risk', async () => {
    const alone = await server()
    expect((await check(alone.address))['cluster']).toMatchObject({ level: 'risk' })
  })

  it('says what is not permitted', async () => {
    const guarded = await server()
    await guarded.addRoot()
    await guarded.addApp()
    await guarded.ctl('auth', 'enable')
    const user = { username: 'app', password: 'secret' }
    const locks = new Holdfast(etcd(guarded.address, user))
    onTestFinished(() => locks.close())
    await expect(locks.mutex('door').acquire()).rejects.toThrow('the user needs read and write permission')
    const root = await check(guarded.address, { username: 'root', password: 'secret' })
    expect(root['permissions']).toMatchObject({ level: 'fine' })
  })

  it('is content with a user that may only use the keys of the store', async () => {
    const guarded = await server()
    await guarded.addRoot()
    await guarded.addApp('holdfast/')
    await guarded.ctl('auth', 'enable')
    const findings = await check(guarded.address, { username: 'app', password: 'secret' })
    expect(findings['permissions']).toMatchObject({ level: 'fine' })
    expect(findings['latency']).toBeDefined()
  })
})
