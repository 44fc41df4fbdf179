import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import { TcpProxy } from './proxy.js'

/** A client of an echo, with what it has heard. */
class Caller {
  heard = ''
  readonly socket: Socket

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').on('error', () => {})
    this.socket.on('data', (data) => {
      this.heard += data
    })
  }

  async says(text: string): Promise<void> {
    this.socket.write(text)
    await eventually(`the echo of ${text}`, () => this.heard.endsWith(text))
  }

  async isCut(): Promise<void> {
    await eventually('the cut', () => this.socket.destroyed)
  }
}

describe('the proxy', () => {
  let served = ''
  const echo = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (data) => {
        served += data
        socket.write(data)
      })
  })
  let proxy: TcpProxy
  const callers: Caller[] = []
  const call = (): Caller => {
    const caller = new Caller(proxy.port)
    callers.push(caller)
    return caller
  }

  beforeEach(async () => {
    served = ''
    if (!echo.listening) await once(echo.listen(0, '127.0.0.1'), 'listening')
    proxy = await TcpProxy.start((echo.address() as AddressInfo).port)
  })

  afterEach(async () => {
    for (const { socket } of callers.splice(0)) socket.destroy()
    await proxy.stop()
  })

  it('passes, and counts connections and bytes', async () => {
    const [one, two] = [call(), call()]
    await Promise.all([one.says('hello'), two.says('you')])
    expect([proxy.connections, proxy.openConnections]).toEqual([2, 2])
    expect(proxy.bytes).toEqual({ up: 8, down: 8 })
  })

  it('cuts once, or refuses until it passes again', async () => {
    const one = call()
    await one.says('hello')
    proxy.cut()
    await one.isCut()
    await call().says('again')
    proxy.mode = 'refuse'
    await call().isCut()
    proxy.mode = 'pass'
    await call().says('at last')
  })

  it('stalls old and new connections, and loses nothing', async () => {
    const one = call()
    await one.says('before')
    proxy.mode = 'stall'
    const two = call()
    one.socket.write('one')
    two.socket.write('two')
    await pass(100)
    expect([one.heard, two.heard, served]).toEqual(['before', '', 'before'])
    proxy.mode = 'pass'
    await eventually('both echoes', () => one.heard === 'beforeone' && two.heard === 'two')
  })

  it('loses replies of requests that were served, and the connection with them', async () => {
    const one = call()
    proxy.mode = 'lose replies'
    one.socket.write('lost')
    await eventually('the request', () => proxy.bytes.down === 4)
    expect([one.heard, one.socket.destroyed]).toEqual(['', false])
    proxy.mode = 'pass'
    await one.isCut()
    await call().says('hello')
  })

  it('delays both ways, in order', async () => {
    proxy.delayMs = 30
    const startedAt = performance.now()
    const one = call()
    one.socket.write('a')
    await one.says('b')
    expect(one.heard).toBe('ab')
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(58)
  })
})
