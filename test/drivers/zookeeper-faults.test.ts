import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import type { WatchEvent } from '../../src/drivers/zookeeper/index.js'
import { CountingEnv, eventually, inTime, now, pass, Watched } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { TcpProxy } from '../servers/proxy.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { client, failsWith } from './zookeeper/helpers.js'

describeOn('zookeeper', 'the ZooKeeper client in trouble', () => {
  let server: ZooKeeperServer
  let proxy: TcpProxy
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port)
  })
  afterEach(() => proxy.stop())

  /** Where no silence is the subject: a server that stands still for a moment is not suspected. */
  const PATIENT_MS = 20_000
  const through = (sessionTimeout: number, more = {}) =>
    client(`127.0.0.1:${proxy.port}`, { sessionTimeout, requestTimeout: '20s', closeTimeout: 200, ...more })

  it('comes back with the same session when the connection is cut', async () => {
    const zk = through(PATIENT_MS)
    await zk.create('/cut', { mode: 'ephemeral' })
    const session = zk.session
    proxy.cut()
    await zk.hears('reconnected')
    expect(zk.heard).toEqual(['connected', 'suspected', 'reconnected'])
    expect((await zk.exists('/cut')).stat?.ephemeralOwner).toBe(session?.id)
    expect(zk.session).toEqual(session)
  })

  it('does not know whether a create happened whose answer was lost, and does not repeat it', async () => {
    const zk = through(PATIENT_MS)
    await zk.create('/lost')
    const downAlready = proxy.bytes.down
    proxy.mode = 'lose replies'
    const create = zk.create('/lost/n-', { mode: 'ephemeralSequential' })
    const read = zk.getChildren('/lost')
    await eventually('the lost reply', () => proxy.bytes.down > downAlready)
    proxy.mode = 'pass'
    expect((await failsWith('CONNECTION_LOSS', create)).maybeDone).toBe(true)
    expect((await failsWith('CONNECTION_LOSS', read)).maybeDone).toBe(false)
    // It did happen, once, and belongs to the session that lives on.
    expect((await zk.getChildren('/lost')).children).toEqual(['n-0000000000'])
    expect((await zk.exists('/lost/n-0000000000')).stat?.ephemeralOwner).toBe(zk.session?.id)
  })

  it('keeps requests while there is no connection, as long as their time allows', async () => {
    const zk = through(PATIENT_MS)
    await zk.sync()
    proxy.mode = 'refuse'
    await zk.hears('suspected')
    const brief = zk.create('/queued', { timeout: 50 })
    const patient = zk.create('/queued', { mode: 'ephemeral' })
    const error = await failsWith('REQUEST_TIMEOUT', brief)
    expect(error.maybeDone).toBe(false)
    expect(error.cause).toBeInstanceOf(Error)
    proxy.mode = 'pass'
    await patient
  })

  it('tells of a server that does not answer, and of answers that come again', async () => {
    // Long enough that a machine which stands still for a moment does not end the connection.
    const zk = through(12_000)
    await zk.sync()
    const before = now()
    proxy.mode = 'stall'
    const create = new Watched(zk.create('/stalled', { mode: 'ephemeral' }))
    await zk.hears('suspected')
    const { since } = zk.events[1] as { since: number }
    expect(since).toBeLessThan(before)
    expect(create.isSettled).toBe(false)
    expect(proxy.connections).toBe(1)
    proxy.mode = 'pass'
    await zk.hears('reconnected')
    await create.promise
    expect(proxy.connections).toBe(1)
  })

  it('gives a stalled connection up before the session is over', async () => {
    const zk = through(8000)
    await zk.create('/stuck', { mode: 'ephemeral' })
    proxy.mode = 'stall'
    const error = await failsWith('CONNECTION_LOSS', zk.setData('/stuck', ''))
    expect(error.maybeDone).toBe(true)
    expect(String(error.cause)).toContain('does not answer')
    proxy.mode = 'pass'
    expect((await zk.exists('/stuck')).stat).not.toBeNull()
    expect(zk.heard.slice(0, 3)).toEqual(['connected', 'suspected', 'reconnected'])
    expect(zk.heard).not.toContain('expired')
  })

  it('gives up on a request at its time, and passes its late answer over', async () => {
    const zk = through(30_000)
    await zk.sync()
    const events: WatchEvent[] = []
    proxy.mode = 'stall'
    const create = zk.create('/late', { timeout: 50 })
    const watch = zk.exists('/late', { timeout: 50, watch: (event) => events.push(event) })
    expect((await failsWith('REQUEST_TIMEOUT', create)).maybeDone).toBe(true)
    expect((await failsWith('REQUEST_TIMEOUT', watch)).maybeDone).toBe(false)
    proxy.mode = 'pass'
    expect((await zk.exists('/late')).stat).not.toBeNull()
    await zk.delete('/late')
    await zk.sync()
    expect(events).toEqual([])
    expect(zk.heard).toEqual(['connected'])
  })

  it('ends when the server has ended the session', async () => {
    const zk = through(4000)
    await zk.create('/expired', { mode: 'ephemeral' })
    const other = client(server.address)
    const gone = deferred<WatchEvent>()
    await other.exists('/expired', { watch: gone.resolve })
    proxy.mode = 'refuse'
    await inTime('the end of the node', gone.promise)
    proxy.mode = 'pass'
    await zk.hears('expired')
    // In so short a session a server that stands still for a moment is suspected and trusted again before.
    expect(zk.heard.slice(-2)).toEqual(['suspected', 'expired'])
    const { heard } = zk
    await failsWith('SESSION_EXPIRED', zk.exists('/expired'))
    await zk.close()
    expect(zk.heard).toEqual(heard)
  })

  it('fires the watches of what happened while it was away', async () => {
    const zk = through(PATIENT_MS)
    const other = client(server.address)
    for (const path of ['/away', '/away/data', '/away/deleted', '/away/same']) await other.create(path)
    const events: string[] = []
    const watch = ({ type, path }: WatchEvent) => events.push(`${type} ${path}`)
    await zk.getData('/away/data', { watch })
    await zk.exists('/away/deleted', { watch })
    await zk.exists('/away/same', { watch })
    await zk.exists('/away/created', { watch })
    await zk.exists('/away/not-yet', { watch })
    await zk.getChildren('/away', { watch })
    proxy.mode = 'refuse'
    await zk.hears('suspected')
    await other.setData('/away/data', 'x')
    await other.delete('/away/deleted')
    await other.create('/away/created')
    proxy.mode = 'pass'
    await eventually('four events', () => events.length === 4)
    expect(events.toSorted()).toEqual([
      'changed /away/data',
      'children /away',
      'created /away/created',
      'deleted /away/deleted',
    ])
    await other.setData('/away/same', 'x')
    await other.create('/away/not-yet')
    await eventually('the others, later', () => events.length === 6)
    expect(events.slice(4)).toEqual(['changed /away/same', 'created /away/not-yet'])
  })

  it('keeps thousands of watches over a cut', async () => {
    const zk = through(30_000)
    const root = `/${'long-name-'.repeat(20)}`
    await zk.create(root)
    const paths = Array.from({ length: 2000 }, (_, index) => `${root}/${index}`)
    const fired = new Set<string>()
    await Promise.all(paths.map((path) => zk.exists(path, { watch: () => fired.add(path) })))
    proxy.cut()
    await zk.hears('reconnected')
    await Promise.all(paths.map((path) => zk.create(path)))
    await zk.sync()
    expect(fired.size).toBe(paths.length)
    expect(zk.heard).toEqual(['connected', 'suspected', 'reconnected'])
  })

  it('authenticates before anything else on each connection', async () => {
    const zk = through(PATIENT_MS, { auth: [{ scheme: 'digest', credentials: 'app:secret' }] })
    const acl = [{ perms: 31, scheme: 'auth', id: '' }]
    // Waits in the queue when the connection opens: sent first, it would be refused as nobody's.
    await zk.create('/guarded', { acl, data: '0' })
    const events: WatchEvent[] = []
    for (let round = 1; round <= 5; round++) {
      await zk.getData('/guarded', { watch: (event) => events.push(event) })
      proxy.mode = 'refuse'
      const asked = Promise.allSettled([zk.setData('/guarded', String(round)), zk.getChildren('/guarded')])
      proxy.mode = 'pass'
      for (const each of await asked)
        if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'CONNECTION_LOSS' })
      await zk.setData('/guarded', 'again')
      await zk.sync()
      expect(events.length).toBe(round)
    }
  })

  it('goes on after the server was killed and started again', async () => {
    const own = await startZooKeeper()
    const zk = client(own.address, { sessionTimeout: 10_000, requestTimeout: '40s' })
    await zk.create('/kept', { mode: 'ephemeral' })
    await own.restart({ keepData: true })
    expect((await zk.exists('/kept')).stat?.ephemeralOwner).toBe(zk.session?.id)
    await zk.close()
    await own.stop()
  })

  it('survives a pause of its own process longer than its patience', async () => {
    const zk = through(6000)
    await zk.create('/paused', { mode: 'ephemeral' })
    await pass(250)
    const read = zk.exists('/paused')
    await new Promise(setImmediate)
    // Nothing runs here meanwhile: the answer waits in the socket while the timers become due.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000)
    await read
    await zk.sync()
    expect(zk.heard).not.toContain('expired')
    expect(proxy.connections).toBe(1)
  })

  it.each(['stall', 'refuse', 'lose replies'] as const)('closes in time: %s', async (mode) => {
    const zk = through(PATIENT_MS)
    await zk.sync()
    proxy.mode = mode
    if (mode === 'refuse') await zk.hears('suspected')
    const request = zk.create('/never')
    const closed = zk.close()
    await failsWith(mode === 'refuse' ? 'CLOSED' : 'CONNECTION_LOSS', request)
    await inTime('the end', closed)
    expect(zk.heard.at(-1)).toBe('closed')
    await failsWith('CLOSED', zk.sync())
    // What it had begun when it ended is there after a look at the sockets, which is between these two.
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
    const { connections } = proxy
    proxy.mode = 'pass'
    await pass(100)
    expect(proxy.connections).toBe(connections)
  })

  it('ends its session on the server if the way is free again while it closes', async () => {
    const zk = through(PATIENT_MS, { closeTimeout: '10s' })
    await zk.create('/leaving', { mode: 'ephemeral' })
    proxy.mode = 'refuse'
    await zk.hears('suspected')
    const closed = zk.close()
    proxy.mode = 'pass'
    await closed
    expect((await client(server.address).exists('/leaving')).stat).toBeNull()
  })

  it('leaves no timer behind, however it ends', async () => {
    const env = new CountingEnv()
    const zk = through(PATIENT_MS, { env })
    await zk.create('/timers', { mode: 'ephemeral' })
    await zk.close()
    const away = through(PATIENT_MS, { env })
    await away.sync()
    proxy.mode = 'refuse'
    await away.hears('suspected')
    await away.close()
    expect(env.activeTimers).toBe(0)
  })

  it('closes at once what never was', async () => {
    const unused = client('127.0.0.1:1')
    await unused.close()
    await unused.close()
    const nowhere = client(`127.0.0.1:${await freePort()}`, { requestTimeout: '20s' })
    const waiting = nowhere.sync()
    await nowhere.close()
    await failsWith('CLOSED', waiting)
  })

  it('does not take something else for ZooKeeper', async () => {
    const impostor = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('220 mail.example ESMTP\r\n')
    })
    const port = await freePort()
    await new Promise<void>((resolve) => impostor.listen(port, '127.0.0.1', resolve))
    const zk = client(`127.0.0.1:${port}`)
    const asked = failsWith('CLOSED', zk.sync())
    await eventually('its failure', () => zk.lastFailure !== undefined)
    expect(String(zk.lastFailure?.cause)).toContain('is this a ZooKeeper server')
    await zk.close()
    await asked
    impostor.close()
  })

  it('finds the server that is there among those that are not', async () => {
    const dead = [await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`)
    const zk = client([...dead, server.address].join(','), { sessionTimeout: PATIENT_MS })
    await zk.sync()
    expect(zk.heard).toEqual(['connected'])
  })
})
