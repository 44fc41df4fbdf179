import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import { ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { Holdfast } from '../../src/index.js'
import { curatorFormat } from '../../src/stores/zookeeper/format.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually, inTime, pass, rejectsWith, Watched } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { java, obstacles, Peer, python } from './zookeeper/peers.js'

const PEERS = [
  { name: 'Kazoo', command: python('kazoo_lock.py'), obstacle: obstacles.kazoo },
  { name: 'Curator', command: java('CuratorLock.java'), obstacle: obstacles.curator },
]

describe('the names of others', () => {
  const format = curatorFormat('lock-')

  it('are read as Curator and Kazoo mean them', () => {
    const uuid = '01234567-89ab-cdef-0123-456789abcdef'
    const hex = '0123456789abcdef0123456789abcdef'
    const parsed = (name: string) => format.parse(name) ?? { id: '', permits: 0, sequence: -1 }
    expect(parsed(`_c_${uuid}-lock-0000000007`)).toMatchObject({
      id: `_c_${uuid}`,
      permits: EXCLUSIVE,
      sequence: 7,
    })
    expect(parsed(`_c_${uuid}-__WRIT__0000000008`)).toMatchObject({ permits: EXCLUSIVE, sequence: 8 })
    expect(parsed(`_c_${uuid}-__READ__0000000009`)).toMatchObject({ permits: 1, sequence: 9 })
    expect(parsed(`${hex}__lock__0000000010`)).toMatchObject({ id: hex, permits: EXCLUSIVE, sequence: 10 })
    expect(parsed(`${hex}__rlock__0000000011`)).toMatchObject({ permits: 1, sequence: 11 })
    expect(format.parse('leases')).toBeNull()
  })

  it('are written as Curator writes them, and found again by the id', () => {
    const prefix = format.prefix({ id: 'me:1', permits: EXCLUSIVE, capacity: EXCLUSIVE })
    expect(prefix).toMatch(/^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-$/)
    expect(format.parse(`${prefix}0000000001`)?.id).toBe(format.idInName('me:1'))
  })
})

describeOn('zookeeper', 'a line that is shared with others', () => {
  let server: ZooKeeperServer
  const opened: { close(options?: { drain: number }): Promise<void> }[] = []
  const peers: Peer[] = []
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterEach(async () => {
    for (const peer of peers.splice(0)) peer.kill()
    await Promise.all(opened.splice(0).map((each) => each.close({ drain: 0 })))
  })
  afterAll(() => server?.stop())

  const locks = (shared: 'curator' | 'curator-read-write' = 'curator'): Holdfast => {
    const store = zookeeper(server.address, { root: '/peers', shared, sessionTimeout: 20_000, tick: 200 })
    const client = new Holdfast(store)
    opened.push(client)
    return client
  }
  const start = (command: readonly string[], path: string): Peer => {
    const peer = new Peer(command, server.address, path)
    peers.push(peer)
    return peer
  }

  for (const { name, command, obstacle } of PEERS)
    it.skipIf(obstacle)(
      `lets ${name} and us in one after the other${obstacle ? ` (skipped: ${obstacle})` : ''}`,
      async () => {
        const path = `/peers/${name}/42`
        const hold = await locks().mutex(`${name}/42`).acquire()
        const peer = start(command, path)
        await peer.says('waiting')
        await eventually('the other one in line', async () => (await names(path)).length === 2)
        const next = new Watched(locks().mutex(`${name}/42`).acquire())
        await eventually('all in line', async () => (await names(path)).length === 3)
        await pass(100)
        expect(peer.said).not.toContain('held')
        await hold.release()
        await peer.says('held')
        await pass(100)
        expect(next.isSettled).toBe(false)
        peer.goOn()
        const last = await inTime('ours again', next.promise)
        expect(last.fence).toBeGreaterThan(hold.fence)
      },
    )

  it('keeps readers and writers apart, with the names of Curator', async () => {
    const lock = locks('curator-read-write').readWrite('table')
    const reader = await lock.read.acquire()
    const second = await lock.read.acquire()
    const writer = new Watched(locks('curator-read-write').readWrite('table').write.acquire())
    await eventually('three in line', async () => (await names('/peers/table')).length === 3)
    expect((await names('/peers/table')).map((name) => name.replace(/.*-(?=__)|\d+$/g, '')).sort()).toEqual([
      '__READ__',
      '__READ__',
      '__WRIT__',
    ])
    await reader.release()
    await pass(50)
    expect(writer.isSettled).toBe(false)
    await second.release()
    await inTime('the writer', writer.promise)
  })

  it('refuses what others would not understand', async () => {
    const client = locks()
    await rejectsWith('UNSUPPORTED', client.semaphore('seats', 3).acquire())
    await rejectsWith('UNSUPPORTED', client.readWrite('table-2').read.acquire())
    await rejectsWith('UNSUPPORTED', client.breakHold('door'))
    const hold = await client.mutex('door').acquire()
    await rejectsWith('UNSUPPORTED', locks().adopt(await hold.export()))
    expect(hold.isValid).toBe(true)
  })

  async function names(path: string): Promise<string[]> {
    const zk = new ZooKeeperClient(server.address)
    opened.push(zk)
    return (await zk.getChildren(path)).children
  }
})
