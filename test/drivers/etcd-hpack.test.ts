import { describe, expect, it } from 'vitest'
import { decodeHeaders, encodeHeaders, type Header } from '../../src/drivers/etcd/http2/hpack.js'
import { decodeHuffman } from '../../src/drivers/etcd/http2/huffman.js'

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

describe('Huffman codes', () => {
  it.each([
    ['www.example.com', 'f1e3 c2e5 f23a 6ba0 ab90 f4ff'],
    ['no-cache', 'a8eb 1064 9cbf'],
    ['custom-value', '25a8 49e9 5bb8 e8b4 bf'],
    ['307', '640e ff'],
    ['Mon, 21 Oct 2013 20:13:21 GMT', 'd07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff'],
    [
      'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
      '94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
    ],
    ['', ''],
  ])('of RFC 7541 give %j', (text, bytes) => {
    expect(decodeHuffman(hex(bytes))).toBe(text)
  })

  it.each([
    ['padding of more than 7 bits', 'f1e3 c2e5 f23a 6ba0 ab90 f4ff ff'],
    ['padding that is not all ones', '640e fe'],
    ['the end of the string in its midst', 'ffff ffff ffff'],
  ])('are refused for %s', (_, bytes) => {
    expect(() => decodeHuffman(hex(bytes))).toThrow('invalid Huffman code')
  })
})

describe('headers', () => {
  it('of the requests of RFC 7541 are read, as far as they need no table', () => {
    const expected = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/'],
      [':authority', 'www.example.com'],
    ]
    expect([...decodeHeaders(hex('8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d'))]).toEqual(expected)
    expect([...decodeHeaders(hex('8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'))]).toEqual(expected)
    // A header that must never be indexed.
    expect([...decodeHeaders(hex('1008 7061 7373 776f 7264 0673 6563 7265 74'))]).toEqual([
      ['password', 'secret'],
    ])
  })

  it('are read as they were written, also long ones', () => {
    const headers: Header[] = [
      [':method', 'POST'],
      [':scheme', 'https'],
      [':path', '/etcdserverpb.KV/Txn'],
      ['content-type', 'application/grpc'],
      ['www-authenticate', 'x'],
      ['token', 'x'.repeat(126)],
      ['longer', 'x'.repeat(127)],
      ['longest', 'x'.repeat(50_000)],
      ['empty', ''],
    ]
    expect([...decodeHeaders(encodeHeaders(headers))]).toEqual(headers)
  })

  it('may say that the table has no room, and not that it has some', () => {
    expect(decodeHeaders(hex('20 88')).get(':status')).toBe('200')
    expect(() => decodeHeaders(hex('3f e11f 88'))).toThrow('not offered')
  })

  it.each([
    ['a number of the table that we do not have', 'be'],
    ['number zero', '80'],
    ['a name of the table that we do not have', '7f 00 01 61'],
    ['a text that ends too early', '00 05 61 62'],
    ['a number that ends too early', 'ff'],
    ['a number that is too large', 'ff ffff ffff ffff ff7f'],
    ['a length far beyond the end', '00 7f ffff ff7f 61'],
  ])('are refused for %s', (_, bytes) => {
    expect(() => decodeHeaders(hex(bytes))).toThrow('Headers cannot be read')
  })

  it('never do anything but throw their own error, whatever the bytes', () => {
    let seed = 1
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed
    }
    for (let round = 0; round < 20_000; round++) {
      const bytes = Buffer.from(Array.from({ length: random() % 24 }, () => random() % 256))
      try {
        decodeHeaders(bytes)
      } catch (error) {
        expect(error, bytes.toString('hex')).toMatchObject({ name: 'Http2Error' })
      }
    }
  })
})
