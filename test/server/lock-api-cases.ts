import { expect, it, onTestFinished } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import { type Dashboard, dashboard } from '../../src/server/index.js'
import type { ResourceDetail } from '../../src/server/shapes.js'
import { TOKEN } from './dashboards.js'
import { matching } from './openapi.js'

/** What the lock API grants. */
export interface Grant {
  token: string
  fence: number
  expires: string
  leaseMs: number
}

/** A client of the lock API that checks each answer against the description. */
export class LockClient {
  constructor(readonly view: Dashboard) {}

  async call(method: string, path: string, name: string, init: { body?: unknown; token?: string } = {}) {
    const encoded = encodeURIComponent(name)
    const request = new Request(`http://localhost${path.replace('{name}', encoded)}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(init.token === undefined ? {} : { 'holdfast-token': init.token }),
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    })
    const response = await this.view.fetch(request)
    const { status } = response
    return { status, body: await matching<never>(method, path, response) }
  }

  async acquire(
    name: string,
    body: object = {},
  ): Promise<{ status: number; body: Grant & { code: string } }> {
    return this.call('POST', '/v1/locks/{name}', name, { body })
  }

  async tryAcquire(
    name: string,
    body: object = {},
  ): Promise<{ status: number; body: Grant & { code: string } }> {
    return this.call('POST', '/v1/locks/{name}/try', name, { body })
  }

  async renew(name: string, token: string, body: object = {}): Promise<{ status: number; body: Grant }> {
    return this.call('PUT', '/v1/holds/{name}', name, { body, token })
  }

  async release(name: string, token: string): Promise<number> {
    return (await this.call('DELETE', '/v1/holds/{name}', name, { token })).status
  }

  async line(name: string): Promise<{ status: number; body: ResourceDetail }> {
    return this.call('GET', '/v1/locks/{name}', name)
  }
}

/** Two servers with connections of their own over one store. */
async function twoServers(open: () => Promise<Holdfast>): Promise<[LockClient, LockClient, Holdfast]> {
  const clients = await Promise.all([open(), open()])
  const views = clients.map((locks) => dashboard(locks, { token: TOKEN, allowLocks: true }))
  onTestFinished(async () => {
    for (const view of views) await view.close()
    for (const locks of clients) await locks.close({ drain: 0 })
  })
  const [one, other] = views.map((view) => new LockClient(view))
  return [one as LockClient, other as LockClient, clients[0] as Holdfast]
}

/** What the lock API does on every store whose claims any connection can use. */
export function lockApiCases(open: () => Promise<Holdfast>): void {
  it('grants on one server, renews and releases through the other', async () => {
    const [one, other] = await twoServers(open)
    const { status, body: hold } = await one.acquire('a', { lease: '20s', label: 'from python' })
    expect(status).toBe(201)
    expect(hold.leaseMs).toBeGreaterThan(10_000)
    expect(hold.leaseMs).toBeLessThanOrEqual(20_000)
    const renewed = await other.renew('a', hold.token, { lease: '1m' })
    expect(renewed).toMatchObject({ status: 200, body: { fence: hold.fence } })
    expect(renewed.body.leaseMs).toBeGreaterThan(40_000)
    expect((await other.tryAcquire('a')).body).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
    expect(await other.release('a', hold.token)).toBe(204)
    expect(await one.release('a', hold.token)).toBe(410)
    expect((await one.renew('a', hold.token)).status).toBe(410)
    const next = await one.tryAcquire('a')
    expect(next.status).toBe(201)
    expect(next.body.fence).toBeGreaterThan(hold.fence)
    expect(await other.release('a', next.body.token)).toBe(204)
  })

  it('waits in line, and gets what the other server releases', async () => {
    const [one, other] = await twoServers(open)
    const first = await one.acquire('a')
    const waiting = one.acquire('a', { wait: '50s', lease: '2m' })
    await expect.poll(async () => (await other.line('a')).body.waitersTotal).toBe(1)
    expect(await other.release('a', first.body.token)).toBe(204)
    const { status, body } = await waiting
    expect(status).toBe(201)
    expect(body.fence).toBeGreaterThan(first.body.fence)
    // Handed over with a full lease, although it had waited.
    expect(body.leaseMs).toBeGreaterThan(60_000)
    expect(await one.release('a', body.token)).toBe(204)
  })

  it('refuses to wait where maxWaiters wait already', async () => {
    const [one, other] = await twoServers(open)
    const first = await one.acquire('a')
    const waiting = one.acquire('a', { wait: '50s', maxWaiters: 1 })
    await expect.poll(async () => (await other.line('a')).body.waitersTotal).toBe(1)
    expect(await other.acquire('a', { maxWaiters: 1 })).toMatchObject({
      status: 503,
      body: { code: 'LINE_FULL' },
    })
    expect((await other.acquire('a', { maxWaiters: 0 })).status).toBe(400)
    expect((await other.tryAcquire('a', { maxWaiters: 1 })).status).toBe(400)
    expect(await one.release('a', first.body.token)).toBe(204)
    const { status, body } = await waiting
    expect(status).toBe(201)
    expect(await one.release('a', body.token)).toBe(204)
  })

  it('does not show the token, and takes no other for it', async () => {
    const [one, other] = await twoServers(open)
    const { body } = await one.acquire('a', { label: 'mine' })
    const line = await other.line('a')
    expect(line.body.holders).toMatchObject([{ label: 'mine', fence: body.fence }])
    const id = line.body.holders[0]?.id ?? ''
    expect(JSON.stringify(line.body)).not.toContain(body.token)
    for (const wrong of [id, id.replace('http:', ''), 'x'.repeat(64)]) {
      expect((await other.renew('a', wrong)).status).toBe(410)
      expect(await other.release('a', wrong)).toBe(410)
    }
    expect((await one.renew('b', body.token)).status).toBe(410)
    expect(await other.release('a', body.token)).toBe(204)
  })

  it('lets readers share, and counts permits', async () => {
    const [one, other] = await twoServers(open)
    const readers = await Promise.all([
      one.acquire('config', { mode: 'read' }),
      other.acquire('config', { mode: 'read' }),
    ])
    expect(readers.map(({ status }) => status)).toEqual([201, 201])
    expect((await one.tryAcquire('config')).status).toBe(409)
    const gpus = await one.acquire('gpu', { capacity: 4, permits: 3 })
    expect(gpus.status).toBe(201)
    expect((await other.tryAcquire('gpu', { capacity: 4, permits: 2 })).status).toBe(409)
    expect((await other.tryAcquire('gpu', { capacity: 5 })).body.code).toBe('CAPACITY_MISMATCH')
    expect((await other.tryAcquire('gpu', { capacity: 4 })).status).toBe(201)
  })

  it('loses the hold of a client that does not renew', async () => {
    const [one, other, locks] = await twoServers(open)
    const { body } = await one.acquire('a', { lease: '1s' })
    const hold = await locks.mutex('a').acquire({ wait: '50s' })
    expect(hold.fence).toBeGreaterThan(body.fence)
    expect((await other.renew('a', body.token)).status).toBe(410)
    await hold.release()
  })
}
