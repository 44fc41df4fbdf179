import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { type RedisClient, redis } from '../../src/stores/redis/index.js'
import { eventually, inTime, rejectsWith } from '../../src/testing/conformance/checks.js'
import { WorkerClient } from '../../src/testing/worker-client.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

/** A certificate authority that nobody knows, and a server's certificate that it has signed. */
function makeCertificates(folder: string): { ca: string; cert: string; key: string } {
  const file = (name: string): string => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const [newKey, days] = [
    ['-newkey', 'rsa:2048', '-nodes'],
    ['-days', '2'],
  ]
  openssl(
    'req',
    '-x509',
    ...newKey,
    ...days,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-subj',
    '/CN=private CA',
  )
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost')
  writeFileSync(file('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1')
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names']
  openssl('x509', '-req', '-in', 'server.csr', ...signed, ...days, '-out', 'server.crt')
  return { ca: file('ca.crt'), cert: file('server.crt'), key: file('server.key') }
}

describeOn('redis', 'the Redis store over TLS, with a private authority', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tls-'))
  let server: RedisServer
  let port: number
  let caFile: string
  beforeAll(async () => {
    const { ca, cert, key } = makeCertificates(folder)
    caFile = ca
    port = await freePort()
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', ca]
    server = await startRedis({ args: ['--tls-port', String(port), '--tls-auth-clients', 'no', ...files] })
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const OWN: Record<string, (ca: Buffer) => Promise<{ client: RedisClient; end(): unknown }>> = {
    async ioredis(ca) {
      const client = new Redis({ host: 'localhost', port, tls: { ca } })
      return { client, end: () => client.disconnect() }
    },
    async redis(ca) {
      const client = createClient({ socket: { host: 'localhost', port, tls: true, ca } })
      client.on('error', () => {})
      await client.connect()
      return { client, end: () => client.destroy() }
    },
    async iovalkey(ca) {
      const client = new Valkey({ host: 'localhost', port, tls: { ca } })
      return { client, end: () => client.disconnect() }
    },
  }

  it.each(Object.entries(OWN))(
    'hands a lock over by a message, through a client of %s',
    async (name, make) => {
      const { client, end } = await make(readFileSync(caFile))
      onTestFinished(() => void end())
      // No pulse comes in time.
      const [one, two] = [1, 2].map(() => new Holdfast(redis(client), { presence: '10m' }))
      onTestFinished(
        async () => void (await Promise.all([one?.close({ drain: 0 }), two?.close({ drain: 0 })])),
      )
      const hold = await one?.mutex(name).acquire({ lease: '10m' })
      const next = two?.mutex(name).acquire({ lease: '10m' })
      await eventually('one who waits', async () => {
        for await (const line of (one as Holdfast).inspect({ prefix: name })) return line.waiters.length === 1
        return false
      })
      await hold?.release()
      expect((await inTime('the next one', Promise.resolve(next)))?.isValid).toBe(true)
    },
  )

  it.each(Object.keys(OWN))(
    'is named by the error where only one side speaks it, through %s',
    async (driver) => {
      const wrong = [
        [`rediss://localhost:${server.port}`, /without TLS, write redis:\/\//],
        [`redis://localhost:${port}`, /wants TLS, write rediss:\/\//],
      ] as const
      for (const [url, words] of wrong) {
        const locks = new Holdfast(redis(`${url}?driver=${driver}`), { storeTimeout: 1000 })
        onTestFinished(() => locks.close({ drain: 0 }).catch(() => {}))
        // If this process stands still for that second, it has not heard why.
        await eventually('the reason', async () =>
          words.test((await rejectsWith('STORE_UNAVAILABLE', locks.mutex('door').acquire())).message),
        )
      }
    },
  )

  it.each(Object.keys(OWN))('is opened by a rediss:// URL, through %s', async (driver) => {
    const url = `rediss://localhost:${port}?driver=${driver}`
    const worker = await WorkerClient.start({ env: { NODE_EXTRA_CA_CERTS: caFile } })
    onTestFinished(() => worker.end())
    await worker.call('open', { url, storeModule: null }, {})
    const { hold } = await worker.call('acquire', 'door', { lease: '10m' })
    expect(await worker.call('release', hold)).toBe(true)
    // Here nobody has heard of that authority.
    const locks = new Holdfast(redis(url), { storeTimeout: 1000 })
    onTestFinished(() => locks.close({ drain: 0 }))
    // If this process stands still for that second, it has not heard why.
    await eventually('the reason', async () => {
      const refused = await rejectsWith('STORE_UNAVAILABLE', locks.mutex('door').acquire())
      return /certificate|self.signed/i.test(refused.message)
    })
  })
})
