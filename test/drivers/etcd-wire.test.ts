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

  it.each([
    0x7fn,
    0x80n,
    2n ** 28n - 1n,
    2n ** 28n,
    2n ** 32n,
    2n ** 35n,
    2n ** 56n,
    2n ** 63n - 1n,
    -1n,
    -(2n ** 63n),
  ])('reads %s as it was written, as every protobuf does', (number) => {
    const bytes = new ProtoWriter().int(1, number).finish()
    const reader = new ProtoReader(bytes)
    expect([reader.next(), reader.long(), reader.next()]).toEqual([1, number, 0])
    const expected: number[] = []
    let rest = BigInt.asUintN(64, number)
    for (; rest >= 0x80n; rest >>= 7n) expected.push(Number(rest & 0x7fn) | 0x80)
    expect([...bytes.subarray(1)]).toEqual([...expected, Number(rest)])
  })

  it.each([0, 1, 122, 123, 124, 125, 126, 127, 128, 500, 16_381, 16_384, 100_000])(
    'reads messages in messages around a text of %i bytes',
    (length) => {
      const text = 'é'.repeat(length / 2) + 'x'.repeat(length % 2)
      const bytes = new ProtoWriter()
        .int(9, 9)
        .message(1, (outer) => {
          outer.message(2, (inner) => inner.text(3, text).int(4, 5)).message(5, () => {})
        })
        .int(6, 7)
        .finish()
      const reader = new ProtoReader(bytes)
      expect([reader.next(), reader.int(), reader.next()]).toEqual([9, 9, 1])
      const outer = reader.message()
      expect(outer.next()).toBe(2)
      const inner = outer.message()
      if (length > 0) expect([inner.next(), inner.text()]).toEqual([3, text])
      expect([inner.next(), inner.int(), inner.next()]).toEqual([4, 5, 0])
      expect([outer.next(), outer.message().next(), outer.next()]).toEqual([5, 0, 0])
      expect([reader.next(), reader.int(), reader.next()]).toEqual([6, 7, 0])
    },
  )

  it.each(['plain', 'ends with é', '🔒 first', '\ud800 alone', 'x'.repeat(600), `${'x'.repeat(600)}é`])(
    'writes a text as UTF-8, whatever stands around it (%#)',
    (text) => {
      const bytes = new ProtoWriter(3).int(1, 1).text(2, text).text(3, 'after').finish()
      const reader = new ProtoReader(bytes, 3)
      expect([reader.next(), reader.int()]).toEqual([1, 1])
      expect([reader.next(), reader.text()]).toEqual([2, Buffer.from(text).toString()])
      expect([reader.next(), reader.text(), reader.next()]).toEqual([3, 'after', 0])
    },
  )

  it('does not read beyond a message into the one around it', () => {
    const bytes = Buffer.from([0x0a, 0x02, 0x12, 0x05, 0x61, 0x62, 0x63, 0x64, 0x65])
    const reader = new ProtoReader(bytes)
    reader.next()
    const inner = reader.message()
    expect(inner.next()).toBe(2)
    expect(() => inner.text()).toThrow('ends too early')
    const number = new ProtoReader(Buffer.from([0x0a, 0x02, 0x08, 0x80, 0x01]))
    number.next()
    const cut = number.message()
    cut.next()
    expect(() => cut.int()).toThrow('ends too early')
    expect(() => new ProtoReader(Buffer.alloc(20, 0xff)).long()).toThrow('too long')
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
