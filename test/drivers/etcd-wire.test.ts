import { describe, expect, it, vi } from 'vitest'
import { decodeStatusMessage, errorOfStatus } from '../../src/drivers/etcd/errors.js'
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

describe('a long message', () => {
  it('is copied once, however many pieces it comes in', () => {
    const concat = vi.spyOn(Buffer, 'concat')
    const frame = grpcFrame(Buffer.alloc(100_000, 'x'))
    const splitter = new MessageSplitter()
    const messages: Buffer[] = []
    for (let at = 0; at < frame.length; at += 100)
      messages.push(...splitter.push(frame.subarray(at, at + 100)))
    const copied = concat.mock.results.map(({ value }) => (value as Buffer).length)
    concat.mockRestore()
    expect(messages.map(({ length }) => length)).toEqual([100_000])
    expect(copied).toEqual([frame.length])
  })
})

describe('a status', () => {
  it('has a text that may not be encoded', () => {
    expect(decodeStatusMessage('etcdserver: 100%25 full')).toBe('etcdserver: 100% full')
    expect(decodeStatusMessage('100% full')).toBe('100% full')
  })

  it('tells whether the request may have been carried out', () => {
    const [invalid, cancelled, internal, unavailable] = [3, 1, 13, 14].map((code) => errorOfStatus(code, ''))
    expect([invalid, cancelled, internal, unavailable].map((error) => error?.maybeDone)).toEqual([
      ...[false, true, true, true],
    ])
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
