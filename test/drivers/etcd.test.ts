import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { EtcdClient, type EtcdOptions } from '../../src/drivers/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, type EtcdServerOptions, startEtcd } from '../servers/etcd.js'
import { TcpProxy } from '../servers/proxy.js'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function start(options?: EtcdServerOptions): Promise<EtcdServer> {
  const server = await startEtcd(options)
  endings.push(() => server.stop())
  return server
}

function client(address: string, options?: EtcdOptions): EtcdClient {
  const made = new EtcdClient(address, options)
  endings.push(() => made.close())
  return made
}

describeOn('etcd', 'the client for etcd', () => {
  it('writes, reads, compares and removes', async () => {
    const etcd = client((await start()).address)
    const revision = await etcd.put('a', 'one')
    expect(await etcd.get('a')).toMatchObject({ createRevision: revision, modRevision: revision, lease: 0n })
    const swap = (value: number) =>
      etcd.transaction({
        compare: [{ key: 'a', target: 'mod', is: '=', value }],
        success: [{ type: 'put', key: 'a', value: 'two' }],
        failure: [{ type: 'range', key: 'a' }],
      })
    expect((await swap(revision)).succeeded).toBe(true)
    const { succeeded, results } = await swap(revision)
    expect([succeeded, String(results[0]?.keys[0]?.value)]).toEqual([false, 'two'])
    expect([await etcd.delete('a'), await etcd.delete('a'), await etcd.get('a')]).toEqual([true, false, null])
  })

  it('leaves a server that is stalled, and goes on with its watches at another one', async () => {
    const server = await start()
    const [stalled, other] = [await TcpProxy.start(server.port), await TcpProxy.start(server.port)]
    endings.push(() => Promise.all([stalled.stop(), other.stop()]))
    other.mode = 'refuse'
    const address = [stalled, other].map(({ port }) => `127.0.0.1:${port}`).join(',')
    const etcd = client(address, { stallTimeout: '500ms', requestTimeout: '20s' })
    const seen: string[] = []
    const from = (await etcd.put('w/0', '')) + 1
    const onEvents = (events: readonly { kv: { key: string } }[]) =>
      seen.push(...events.map(({ kv }) => kv.key))
    etcd.watch({ key: 'w/', end: 'w0', from, onEvents, onCompacted: () => seen.push('compacted') })
    await etcd.put('w/1', '')
    await eventually('the first event', () => seen.length === 1)
    stalled.mode = 'stall'
    other.mode = 'pass'
    await expect(etcd.put('w/2', '')).rejects.toMatchObject({ code: 'UNAVAILABLE', maybeDone: true })
    await etcd.put('w/3', '')
    await eventually('the last event', () => seen.at(-1) === 'w/3')
    expect(seen.filter((key) => key !== 'w/2')).toEqual(['w/1', 'w/3'])
  })

  it('tells a watch whose history is gone', async () => {
    const server = await start()
    const etcd = client(server.address)
    for (const value of ['1', '2', '3']) await etcd.put('a', value)
    await server.compact()
    let isCompacted = false
    const onCompacted = (): void => {
      isCompacted = true
    }
    etcd.watch({ key: 'a', from: 2, onEvents: () => {}, onCompacted })
    await eventually('the compaction', () => isCompacted)
  })

  it('fails at its deadline when no server answers', async () => {
    const server = await start()
    const etcd = client(server.address, { requestTimeout: '300ms', stallTimeout: '10s' })
    await etcd.put('a', '')
    server.pause()
    await expect(etcd.get('a')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED', maybeDone: true })
    server.resume()
  })

  it('keeps a lease, counts it from before its renewal, and hears of its end', async () => {
    const server = await start()
    const etcd = client(server.address)
    let hasEnded = false
    const lease = etcd.lease(60_000, 'a', () => {
      hasEnded = true
    })
    const id = await lease.ready()
    const granted = lease.validUntil
    await lease.renew()
    // Not before a transaction was answered after it.
    expect(lease.validUntil).toBe(granted)
    await etcd.get('a')
    expect(lease.validUntil).toBeGreaterThan(granted)
    await server.ctl('lease', 'revoke', id.toString(16))
    await lease.renew().catch(() => {})
    expect([hasEnded, lease.id, lease.validUntil]).toEqual([true, null, -Infinity])
    expect(await lease.ready()).not.toBe(id)
  })

  it('names itself, and gets a new token when the old one has ended', async () => {
    const server = await start()
    await server.addRoot()
    await server.ctl('auth', 'enable')
    const etcd = client(server.address, { username: 'root', password: 'secret' })
    await etcd.put('a', '1')
    server.endTokens('root')
    await etcd.put('a', '2')
    expect(String((await etcd.get('a'))?.value)).toBe('2')
    const stranger = client(server.address, { username: 'root', password: 'wrong' })
    await expect(stranger.get('a')).rejects.toThrow('authentication failed')
    await expect(client(server.address).get('a')).rejects.toThrow('user name is empty')
  })

  it('speaks TLS with a server whose certificate it knows, and with no other', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-etcd-tls-'))
    endings.push(() => rmSync(folder, { recursive: true, force: true }))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=holdfast-test', '-addext', 'subjectAltName=IP:127.0.0.1']
    const files = ['-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], {
      stdio: 'ignore',
    })
    const args = ['--cert-file', cert, '--key-file', key]
    const server = await start({ scheme: 'https', args, ctl: ['--cacert', cert] })
    const etcd = client(server.address, { tls: { ca: readFileSync(cert) } })
    await etcd.put('a', 'secret')
    expect(String((await etcd.get('a'))?.value)).toBe('secret')
    const trusting = client(server.address, { tls: true, requestTimeout: '2s' })
    await expect(trusting.get('a')).rejects.toThrow(/self.signed/i)
  })
})
