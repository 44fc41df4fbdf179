import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { client, failsWith } from './zookeeper/helpers.js'

/** A certificate for 127.0.0.1 that signs itself, also in one file with its key. */
function makeCertificate(folder: string): { cert: string; both: string } {
  const [key, cert, both] = ['key.pem', 'cert.pem', 'both.pem'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const subject = ['-subj', '/CN=holdfast-test', '-addext', 'subjectAltName=IP:127.0.0.1']
  const files = ['-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], {
    stdio: 'ignore',
  })
  writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'))
  return { cert, both }
}

describeOn('zookeeper', 'the ZooKeeper client over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-zookeeper-tls-'))
  let server: ZooKeeperServer
  let port: number
  let ca: Buffer
  beforeAll(async () => {
    const { cert, both } = makeCertificate(folder)
    ca = readFileSync(cert)
    port = await freePort()
    server = await startZooKeeper({
      config: { secureClientPort: String(port), secureClientPortAddress: '127.0.0.1' },
      properties: {
        // https://zookeeper.apache.org/doc/r3.8.0/zookeeperAdmin.html#sc_ssl_configuration: TLS is Netty's alone.
        'zookeeper.serverCnxnFactory': 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        'zookeeper.ssl.keyStore.location': both,
        'zookeeper.ssl.trustStore.location': cert,
        'zookeeper.ssl.clientAuth': 'none',
      },
    })
  })
  afterAll(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('speaks with a server whose certificate it knows', async () => {
    const zk = client(`127.0.0.1:${port}`, { tls: { ca } })
    const { path } = await zk.create('/secret-', { mode: 'ephemeralSequential' })
    expect((await client(server.address).exists(path)).stat?.ephemeralOwner).toBe(zk.session?.id)
    await zk.close()
    expect((await client(server.address).exists(path)).stat).toBeNull()
  })

  it('does not speak with one that it does not know, and says why', async () => {
    const zk = client(`127.0.0.1:${port}`, { tls: true })
    const asked = failsWith('CLOSED', zk.sync())
    await eventually('its failure', () => zk.lastFailure !== undefined)
    expect(String(zk.lastFailure)).toContain('self-signed certificate')
    await zk.close()
    await asked
  })

  it('fails, and does not hang, where only one side uses TLS', async () => {
    await failsWith('REQUEST_TIMEOUT', client(`127.0.0.1:${port}`, { requestTimeout: 500 }).sync())
    await failsWith('REQUEST_TIMEOUT', client(server.address, { tls: { ca }, requestTimeout: 500 }).sync())
    const nonsense = client(server.address, { tls: { cert: 'no certificate' }, requestTimeout: 100 })
    expect((await failsWith('REQUEST_TIMEOUT', nonsense.sync())).cause).toBeInstanceOf(Error)
  })
})
