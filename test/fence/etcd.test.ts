import { afterAll, beforeAll, expect, it } from 'vitest'
import { EtcdClient } from '../../src/drivers/etcd/index.js'
import { etcdFenceKey, etcdGuard } from '../../src/fence/index.js'
import { Holdfast } from '../../src/index.js'
import { etcd } from '../../src/stores/etcd/index.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'

describeOn('etcd', 'a guarded write in etcd', () => {
  let server: EtcdServer
  let client: EtcdClient
  beforeAll(async () => {
    server = await startEtcd()
    client = new EtcdClient(server.address)
  })
  afterAll(async () => {
    await client?.close()
    await server?.stop()
  })
  const readKey = async (key: string) => String((await client.get(key))?.value)

  it('takes newer and equal fences, and refuses older ones, however many digits they have', async () => {
    const guard = etcdGuard(client)
    const at = (fence: number) => ({ resource: 'digits', fence })
    await guard.put(at(9), 'digits', 'a')
    await guard.put(at(10), 'digits', 'b')
    await guard.put(at(10), 'digits', 'c')
    const refusal = { code: 'STALE_FENCE', newestFence: 10, resource: 'digits' }
    await expect(guard.put(at(9), 'digits', 'late')).rejects.toMatchObject(refusal)
    await expect(guard.check(at(9))).rejects.toMatchObject(refusal)
    expect(await readKey('digits')).toBe('c')
    expect(Number(await readKey(etcdFenceKey('digits')))).toBe(10)
    await guard.put(at(Number.MAX_SAFE_INTEGER), 'digits', 'last')
    await expect(guard.put(at(10), 'digits', 'late')).rejects.toMatchObject({ code: 'STALE_FENCE' })
  })

  it('does all operations or none', async () => {
    const guard = etcdGuard(client)
    const move = (fence: number) =>
      guard.run({ resource: 'move', fence }, [
        { type: 'put', key: 'move/a', value: String(fence) },
        { type: 'range', key: 'move/a' },
      ])
    const [, found] = await move(2)
    expect(String(found?.keys[0]?.value)).toBe('2')
    await expect(move(1)).rejects.toMatchObject({ code: 'STALE_FENCE' })
    expect(await readKey('move/a')).toBe('2')
  })

  it('takes a hold, and refuses one that was succeeded', async () => {
    const locks = new Holdfast(etcd(server.address))
    const guard = etcdGuard(client)
    const first = await locks.mutex('door').acquire()
    await guard.put(first, 'door', 'first')
    await first.release()
    const second = await locks.mutex('door').acquire()
    await guard.put(second, 'door', 'second')
    await expect(guard.put(first, 'door', 'late')).rejects.toMatchObject({ code: 'STALE_FENCE' })
    expect(await readKey('door')).toBe('second')
    await second.release()
    await locks.close()
  })
})
