import { describe, expect, it } from 'vitest'
import { grpcFrame, MessageSplitter } from '../../src/drivers/etcd/frames.js'
import { parseEtcdServers } from '../../src/drivers/etcd/hosts.js'
import { ProtoReader, ProtoWriter } from '../../src/drivers/etcd/protobuf.js'

describe('protobuf', () => {
  it('reads the numbers that it wrote', () => {
    const numbers = [1, 127, 128, 300, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]
    for (const number of numbers) {
      const reader = new ProtoReader(new ProtoWriter().int(3, number).finish())
      expect([reader.next(), reader.int(), reader.next()]).toEqual([3, number, 0])
    }
    const lease = 0x7fff_ffff_ffff_fff1n
    const reader = new ProtoReader(new ProtoWriter().int(64, lease).finish())
    expect([reader.next(), reader.long()]).toEqual([64, lease])
  })

  it('leaves out what is empty, and skips what it does not know', () => {
    expect(
      new ProtoWriter().int(1, 0).text(2, '').bytes(3, Buffer.alloc(0)).int(4, false).finish(),
    ).toHaveLength(0)
    const bytes = new ProtoWriter()
      .int(1, 7)
      .text(2, 'x'.repeat(1000))
      .message(3, (inner) => inner.text(1, 'inside'))
      .finish()
    const reader = new ProtoReader(bytes)
    for (const field of [1, 2]) {
      expect(reader.next()).toBe(field)
      reader.skip()
    }
    expect(reader.next()).toBe(3)
    const inner = reader.message()
    expect([inner.next(), inner.text(), inner.next(), reader.next()]).toEqual([1, 'inside', 0, 0])
  })

  it('says so when a message ends too early', () => {
    const bytes = new ProtoWriter().text(1, 'cut off').finish()
    const reader = new ProtoReader(bytes.subarray(0, 4))
    reader.next()
    expect(() => reader.text()).toThrow('ends too early')
  })
})

describe('frames', () => {
  it('are found however they are cut', () => {
    const bytes = Buffer.concat(['', 'a', 'b'.repeat(300)].map((text) => grpcFrame(Buffer.from(text))))
    for (const size of [1, 2, 5, 7, 100, bytes.length]) {
      const splitter = new MessageSplitter()
      const messages: string[] = []
      for (let at = 0; at < bytes.length; at += size)
        messages.push(...splitter.push(bytes.subarray(at, at + size)).map(String))
      expect(messages).toEqual(['', 'a', 'b'.repeat(300)])
    }
  })
})

describe('an address', () => {
  it('names servers', () => {
    expect(parseEtcdServers('a, b:1,[::1]:2')).toEqual([
      { host: 'a', port: 2379 },
      { host: 'b', port: 1 },
      { host: '::1', port: 2 },
    ])
    expect(() => parseEtcdServers('a:99999')).toThrow('does not name etcd servers')
  })
})
