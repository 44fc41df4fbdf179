import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { EtcdClient, type Key } from '../../src/drivers/etcd/index.js'
import { type Hold, Holdfast } from '../../src/index.js'
import { type EtcdStoreOptions, etcd, etcdFromUrl } from '../../src/stores/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'

const PATIENT = { ttl: '60s', requestTimeout: '20s', stallTimeout: '20s' } as const
const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

describeOn('etcd', 'corners of the etcd store', () => {
  let server: EtcdServer
  beforeEach(async () => {
    server = await startEtcd()
    endings.push(() => server.stop())
  })

  function locksWith(options: EtcdStoreOptions = {}): Holdfast {
    const locks = new Holdfast(etcd(server.address, { ...PATIENT, ...options }))
    endings.push(() => locks.close())
    return locks
  }

  async function listed(locks: Holdfast): Promise<string[]> {
    const names: string[] = []
    for await (const { name } of locks.inspect()) names.push(name)
    return names
  }

  it('keys that it did not write do no harm', async () => {
    const locks = locksWith()
    const hold = await locks.mutex('door').acquire()
    const waiting = locks.mutex('door').acquire({ wait: '1m' })
    await server.ctl('put', 'holdfast/default/lines/50%/abc', 'odd')
    await server.ctl('put', 'holdfast/default/lines/door.pin', 'odd')
    await server.ctl('put', 'holdfast/default/states/50%', '=odd')
    await server.ctl('put', 'holdfast/50%/states/a', '=odd')
    expect(await listed(locks)).toEqual(['door'])
    expect(await locks.spaces()).toEqual(['default'])
    expect(await locks.overview()).toEqual({ elections: [], latches: [], barriers: [], once: [] })
    await hold.release()
    await (await waiting).release()
  })

  it('keys that are no text are passed over, also at the end of a page', async () => {
    const client = new EtcdClient(server.address)
    endings.push(() => client.close())
    const put = (...keys: readonly Key[]): Promise<unknown> =>
      client.transaction({ success: keys.map((key) => ({ type: 'put', key, value: '=1' }) as const) })
    const noText = (prefix: string, byte: number, suffix: string): Buffer =>
      Buffer.concat([Buffer.from(prefix), Buffer.of(byte), Buffer.from(suffix)])
    await put(noText('holdfast/', 0xff, '/lines/a/1'), 'holdfast/zoo/lines/a/1', 'holdfast/no-space')
    const places = { 'shared/': '/1', 'holdfast/default/states/': '' }
    for (const [prefix, suffix] of Object.entries(places)) {
      for (let from = 0; from < 999; from += 111)
        await put(...Array.from({ length: 111 }, (_, index) => `${prefix}lock-${from + index}${suffix}`))
      // The last one of 1000, which are read at once, and the next one.
      await put(noText(prefix, 0xe9, suffix), `${prefix}\ue000${suffix}`)
    }
    expect(await listed(locksWith({ shared: 'etcdctl', root: 'shared/' }))).toContain('\ue000')
    const connection = etcd(server.address, PATIENT).connect({ id: 'c', space: 'default', push: () => {} })
    endings.push(() => connection.close())
    const states: string[] = []
    for await (const { key } of connection.states('')) states.push(key)
    expect(states).toContain('\ue000')
    expect(await locksWith().spaces()).toEqual(expect.arrayContaining(['default', 'zoo']))
  })

  it('the line of every hold that lasts is watched', async () => {
    const watch = vi.spyOn(EtcdClient.prototype, 'watch')
    endings.push(() => watch.mockRestore())
    const isWatched = (name: string): boolean =>
      watch.mock.calls.some(([{ key }]) => key === `holdfast/default/lines/${name}.`)
    const locks = locksWith()
    await Promise.all(['a', 'b'].map((name) => locks.mutex(name).acquire()))
    await eventually('watches of both', () => isWatched('a') && isWatched('b'))
    // The timer has fired, and has to be set again.
    await locks.mutex('c').acquire()
    await eventually('a watch of the third', () => isWatched('c'))
  })

  it('names of any text are one lock each', async () => {
    const locks = locksWith()
    const names = [
      'a',
      'a/b',
      'a.b',
      'a.pin',
      'a/',
      '%',
      '%2F',
      '\0',
      '\uffff',
      '🔒',
      ' ',
      '../a',
      'a\nb',
      'A',
    ]
    // The keys of one lock must not count for another one, whichever comes first.
    for (const order of [names, names.toReversed()]) {
      const holds: Hold[] = []
      for (const name of order) holds.push(await locks.mutex(name).acquire({ wait: '20s' }))
      expect((await listed(locks)).sort()).toEqual([...names].sort())
      for (const hold of holds) await hold.release()
      expect(await listed(locks)).toEqual([])
    }
  })

  it('lists the locks that it shares, and not what it keeps beside them', async () => {
    const locks = locksWith({ shared: 'etcdctl' })
    await server.ctl('put', 'config.pin', 'no capacity')
    const hold = await locks.mutex('config').acquire()
    expect(await listed(locks)).toEqual(['config'])
    expect(await locks.spaces()).toEqual(['default'])
    await hold.release()
  })

  it('lists many locks although the history is compacted meanwhile', async () => {
    const locks = locksWith()
    const client = new EtcdClient(server.address)
    endings.push(() => client.close())
    const name = (index: number): string => `lock-${String(index).padStart(4, '0')}`
    const keys = Array.from({ length: 1500 }, (_, index) => `holdfast/default/lines/${name(index)}/1`)
    for (let from = 0; from < keys.length; from += 100) {
      const puts = keys.slice(from, from + 100).map((key) => ({ type: 'put', key, value: '' }) as const)
      await client.transaction({ success: puts })
    }
    const names: string[] = []
    for await (const line of locks.inspect()) {
      expect(line.holders).toHaveLength(1)
      names.push(line.name)
      if (names.length > 1) continue
      await client.put('other', '1')
      await client.put('other', '2')
      await server.compact()
    }
    expect(names).toHaveLength(1500)
  })

  it('keeps its keys below any root, also none', async () => {
    const locks = locksWith({ root: '' })
    const hold = await locks.mutex('door').acquire()
    expect(await listed(locks)).toEqual(['door'])
    expect(await locks.spaces()).toEqual(['default'])
    await hold.release()
  })

  it('takes a password with any text from a URL', async () => {
    await server.addRoot('a:b@c%')
    await server.ctl('auth', 'enable')
    // Only the last @ ends it.
    for (const password of ['a:b%40c%25', 'a:b@c%25']) {
      const url = `//root:${password}@${server.address}?requestTimeout=20s&ttl=60s`
      const locks = new Holdfast(etcdFromUrl(url))
      endings.push(() => locks.close())
      await locks.mutex('door').run(async () => {})
    }
  })
})
