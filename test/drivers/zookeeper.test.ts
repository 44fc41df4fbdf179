import { afterAll, beforeAll, expect, it } from 'vitest'
import { CREATOR_ALL, digestAcl, Perms, type WatchEvent } from '../../src/drivers/zookeeper/index.js'
import { eventually, rejectsWith } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { client, failsWith } from './zookeeper/helpers.js'

describeOn('zookeeper', 'the ZooKeeper client', () => {
  let server: ZooKeeperServer
  beforeAll(async () => {
    server = await startZooKeeper({ properties: { 'znode.container.checkIntervalMs': '200' } })
  })
  afterAll(() => server?.stop())

  it('creates, reads, changes and deletes', async () => {
    const zk = client(server.address)
    const { path, stat } = await zk.create('/basics', { data: 'one' })
    expect([path, stat.version, stat.dataLength, stat.ephemeralOwner]).toEqual(['/basics', 0, 3, 0n])
    const read = await zk.getData('/basics')
    expect([String(read.data), read.stat]).toEqual(['one', stat])
    const changed = await zk.setData('/basics', Buffer.from('three'), { version: 0 })
    expect(changed.stat.version).toBe(1)
    expect(changed.stat.mzxid).toBe(changed.zxid)
    expect((await zk.exists('/basics')).stat).toEqual(changed.stat)
    await zk.create('/basics/child')
    const { children, stat: parent } = await zk.getChildren('/basics')
    expect([children, parent.numChildren]).toEqual([['child'], 1])
    expect(parent.pzxid).toBeGreaterThan(changed.zxid)
    await failsWith('NOT_EMPTY', zk.delete('/basics'))
    await zk.delete('/basics/child')
    await zk.delete('/basics', { version: 1 })
    expect((await zk.exists('/basics')).stat).toBeNull()
  })

  it('says what was wrong, with the path, and whether it may have happened', async () => {
    const zk = client(server.address)
    await zk.create('/wrong')
    const error = await failsWith('NODE_EXISTS', zk.create('/wrong'))
    expect(error).toMatchObject({ path: '/wrong', maybeDone: false })
    expect(error.message).toContain("'create /wrong'")
    await failsWith('NO_NODE', zk.getData('/nothing'))
    await failsWith('NO_NODE', zk.create('/nothing/below'))
    await failsWith('BAD_VERSION', zk.delete('/wrong', { version: 7 }))
    await failsWith('BAD_VERSION', zk.setData('/wrong', '', { version: 7 }))
    await zk.create('/brief', { mode: 'ephemeral' })
    await failsWith('NO_CHILDREN_FOR_EPHEMERALS', zk.create('/brief/child'))
    for (const path of ['', 'x', '/x/', '//x', '/a/../b', '/a\u0000b'])
      await rejectsWith('INVALID_ARGUMENT', zk.exists(path))
  })

  it('makes ephemeral, sequential and container nodes', async () => {
    const zk = client(server.address)
    await zk.create('/modes', { mode: 'container' })
    const [one, two] = await Promise.all([
      zk.create('/modes/n-', { mode: 'ephemeralSequential' }),
      zk.create('/modes/', { mode: 'ephemeralSequential' }),
    ])
    expect([one.path, two.path]).toEqual(['/modes/n-0000000000', '/modes/0000000001'])
    expect(one.stat.ephemeralOwner).toBe(zk.session?.id)
    const other = client(server.address)
    expect((await other.exists(one.path)).stat?.ephemeralOwner).toBe(zk.session?.id)
    await zk.close()
    expect((await other.exists(one.path)).stat).toBeNull()
    // The server removes a container when its last child has gone; this one is told to look often.
    await eventually('no container', async () => (await other.exists('/modes')).stat === null)
  })

  it('does all of a multi, or nothing', async () => {
    const zk = client(`${server.address}/`)
    const { results, zxid } = await zk.multi([
      { type: 'create', path: '/m', mode: 'container' },
      { type: 'create', path: '/m/s-', data: 'x', mode: 'ephemeralSequential' },
      { type: 'set', path: '/m', data: 'y', version: 0 },
      { type: 'check', path: '/m', version: 1 },
      { type: 'create', path: '/m/gone' },
      { type: 'delete', path: '/m/gone' },
    ])
    expect(results.map(({ type }) => type)).toEqual(['create', 'create', 'set', 'check', 'create', 'delete'])
    expect(results[1]).toEqual({ type: 'create', path: '/m/s-0000000000' })
    const { stat } = await zk.exists('/m/s-0000000000')
    expect([stat?.ephemeralOwner, stat?.czxid]).toEqual([zk.session?.id, zxid])
    const error = await failsWith(
      'BAD_VERSION',
      zk.multi([
        { type: 'create', path: '/m/never' },
        { type: 'check', path: '/m', version: 99 },
        { type: 'delete', path: '/m/s-0000000000' },
      ]),
    )
    expect(error).toMatchObject({ path: '/m', index: 1, maybeDone: false })
    expect((await zk.getChildren('/m')).children).toEqual(['s-0000000000'])
  })

  it('tells when each request was sent, and the server’s transaction', async () => {
    const zk = client(server.address)
    const before = await zk.sync()
    const created = await zk.create('/told')
    expect(created.sentAt).toBeGreaterThan(before.sentAt)
    expect(created.zxid).toBe(created.stat.czxid)
    const error = await failsWith('NODE_EXISTS', zk.create('/told'))
    expect(error.sentAt).toBeGreaterThan(created.sentAt)
  })

  it('fires watches once, the right ones', async () => {
    const zk = client(server.address)
    const events: WatchEvent[] = []
    const note = (event: WatchEvent) => events.push(event)
    await zk.exists('/w', { watch: note })
    await zk.create('/w')
    await zk.sync()
    await zk.getData('/w', { watch: note })
    await zk.setData('/w', '1')
    await zk.setData('/w', '2')
    await zk.getChildren('/w', { watch: note })
    await zk.create('/w/c')
    await zk.delete('/w/c')
    await zk.exists('/w', { watch: note })
    await zk.getChildren('/w', { watch: note })
    await zk.delete('/w')
    await zk.sync()
    expect(events).toEqual([
      { type: 'created', path: '/w' },
      { type: 'changed', path: '/w' },
      { type: 'children', path: '/w' },
      // One node, one listener, told once though it watched the node and its children.
      { type: 'deleted', path: '/w' },
    ])
  })

  it('tells each listener of its own watch only', async () => {
    const zk = client(server.address)
    const told: string[] = []
    await zk.create('/each')
    await zk.getData('/each', { watch: () => told.push('one') })
    await zk.setData('/each', '1')
    await zk.getData('/each', { watch: () => told.push('two') })
    await zk.setData('/each', '2')
    await zk.sync()
    expect(told).toEqual(['one', 'two'])
  })

  it('does not tell those who no longer watch, nor those whose read failed', async () => {
    const zk = client(server.address)
    const events: WatchEvent[] = []
    const note = (event: WatchEvent) => events.push(event)
    await failsWith('NO_NODE', zk.getData('/unwatched', { watch: note }))
    await zk.exists('/unwatched', { watch: note })
    zk.unwatch('/unwatched', note)
    await zk.create('/unwatched')
    await zk.sync()
    expect(events).toEqual([])
  })

  it('lives below its chroot', async () => {
    const outside = client(server.address)
    await outside.create('/app')
    const zk = client(`${server.address}/app`)
    const events: WatchEvent[] = []
    await zk.getChildren('/', { watch: (event) => events.push(event) })
    await zk.exists('/a', { watch: (event) => events.push(event) })
    expect((await zk.create('/a')).path).toBe('/a')
    expect((await zk.create('/a/s-', { mode: 'persistentSequential' })).path).toBe('/a/s-0000000000')
    const { results } = await zk.multi([{ type: 'create', path: '/b' }])
    expect(results[0]).toMatchObject({ path: '/b' })
    const error = await failsWith('NODE_EXISTS', zk.multi([{ type: 'create', path: '/b' }]))
    expect(error.path).toBe('/b')
    expect((await outside.getChildren('/app')).children.sort()).toEqual(['a', 'b'])
    expect(events).toContainEqual({ type: 'created', path: '/a' })
    expect(events).toContainEqual({ type: 'children', path: '/' })
    await failsWith('NO_NODE', client(`${server.address}/not/there`).create('/a'))
  })

  it('keeps nodes to those who may', async () => {
    const auth = [{ scheme: 'digest', credentials: 'app:secret' }]
    const zk = client(server.address, { auth })
    await zk.create('/mine', { acl: CREATOR_ALL })
    await zk.create('/shared', { acl: [digestAcl('app', 'secret'), digestAcl('other', 'pw', Perms.read)] })
    expect((await zk.getAcl('/mine')).acl).toEqual([digestAcl('app', 'secret')])
    await failsWith('NO_AUTH', client(server.address).getData('/mine'))
    const other = client(server.address, { auth: [{ scheme: 'digest', credentials: 'other:pw' }] })
    await other.getData('/shared')
    await failsWith('NO_AUTH', other.setData('/shared', ''))
    await failsWith('INVALID_ACL', client(server.address).create('/nobody', { acl: CREATOR_ALL }))
    await zk.setAcl('/shared', CREATOR_ALL, { version: 0 })
    await failsWith('NO_AUTH', other.getData('/shared'))
    const both = client(server.address, {
      auth: [{ scheme: 'digest', credentials: 'other:pw' }, ...auth],
    })
    await both.getData('/mine')
  })

  it('ends when the server refuses the authentication', async () => {
    const zk = client(server.address, { auth: [{ scheme: 'no-such-scheme', credentials: 'x' }] })
    await failsWith('AUTH_FAILED', zk.sync())
    expect(zk.events).toEqual([{ type: 'closed', reason: expect.objectContaining({ code: 'AUTH_FAILED' }) }])
    await failsWith('AUTH_FAILED', zk.create('/unseen'))
  })

  it('learns the session’s time-out from the server', async () => {
    const short = client(server.address, { sessionTimeout: 1, requestTimeout: '5s' })
    expect(short.session).toBeNull()
    // It may be over before anything is answered, on a machine that stands still for a moment.
    void short.sync().catch(() => {})
    await eventually('the session', () => short.session !== null)
    expect(short.session).toMatchObject({ timeoutMs: 400 })
    expect(short.session?.id).not.toBe(0n)
    expect(short.session?.password.length).toBe(16)
    const long = client(server.address, { sessionTimeout: '1h' })
    await long.sync()
    expect(long.session?.timeoutMs).toBe(60_000)
    expect(long.heard).toEqual(['connected'])
  })

  it('keeps an idle session alive with pings', async () => {
    const zk = client(server.address, { sessionTimeout: 3000 })
    await zk.create('/pinged', { mode: 'ephemeral' })
    const sid = `sid=0x${zk.session?.id.toString(16)},`
    const received = async () => {
      const own = (await server.ask('cons')).split('\n').find((line) => line.includes(sid))
      return Number(/recved=(\d+)/.exec(own ?? '')?.[1])
    }
    const before = await received()
    // One in half a second, so for longer than the session would live without them.
    await eventually('pings', async () => (await received()) > before + 8)
    expect((await zk.exists('/pinged')).stat).not.toBeNull()
    expect(zk.heard).not.toContain('expired')
  })

  it('answers ten thousand requests at once, in order', async () => {
    const zk = client(server.address, { sessionTimeout: '30s' })
    const order: number[] = []
    const requests = Array.from({ length: 10_000 }, (_, index) =>
      (index % 10 === 0 ? zk.create(`/many-${index}`) : zk.exists(`/many-${index - (index % 10)}`)).then(
        ({ stat }) => {
          if (stat) order.push(index)
        },
      ),
    )
    await Promise.all(requests)
    expect(order).toEqual(order.toSorted((one, other) => one - other))
    expect(order.length).toBe(10_000)
  })

  it('counts requests past the end of the numbers', async () => {
    const zk = client(server.address, { firstXid: 2 ** 31 - 5, sessionTimeout: '30s' })
    const created = await Promise.all(
      Array.from({ length: 20 }, () => zk.create('/wrap-', { mode: 'persistentSequential' })),
    )
    expect(new Set(created.map(({ path }) => path)).size).toBe(20)
    expect(zk.heard).toEqual(['connected'])
  })

  it('refuses what is too much before it is sent', async () => {
    const zk = client(server.address, { maxRequests: 2, sessionTimeout: '30s' })
    const [one, two, three] = [zk.sync(), zk.sync(), zk.sync()]
    await failsWith('QUEUE_FULL', three)
    await Promise.all([one, two])
    await zk.sync()
    const error = await failsWith('TOO_LARGE', zk.create('/large', { data: Buffer.alloc(2 ** 20) }))
    expect(error.maybeDone).toBe(false)
    await zk.create('/just-fits', { data: Buffer.alloc(2 ** 20 - 200) })
    expect((await zk.getData('/just-fits')).data.length).toBe(2 ** 20 - 200)
    expect(zk.heard).toEqual(['connected'])
    expect(() => client('h', { maxRequests: 0 })).toThrow(/maxRequests/)
  })
})
