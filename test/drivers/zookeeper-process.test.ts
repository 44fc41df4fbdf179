import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { TcpProxy } from '../servers/proxy.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'

const run = promisify(execFile)
const script = join(import.meta.dirname, 'zookeeper/idle.mjs')

async function output(...args: string[]): Promise<string> {
  return (await run(process.execPath, [script, ...args], { timeout: 50_000 })).stdout.trim()
}

describeOn('zookeeper', 'a process with a ZooKeeper client', () => {
  let server: ZooKeeperServer
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())

  it('ends by itself when the client is idle', async () => {
    expect(await output(server.address, 'idles')).toBe('idle')
  })

  it('lives as long as a request waits: no server, or a silent one', async () => {
    expect(await output(`127.0.0.1:${await freePort()}`, 'waits')).toBe('REQUEST_TIMEOUT')
    const proxy = await TcpProxy.start(server.port)
    proxy.mode = 'stall'
    expect(await output(`127.0.0.1:${proxy.port}`, 'waits')).toBe('REQUEST_TIMEOUT')
    await proxy.stop()
  })
})
