import { describe, expect, it } from 'vitest'
import { HostRing } from '../../src/drivers/hosts.js'
import { FrameSplitter, frame } from '../../src/drivers/zookeeper/frames.js'
import { parseServers } from '../../src/drivers/zookeeper/hosts.js'
import { digestAcl } from '../../src/drivers/zookeeper/index.js'
import { JuteReader, JuteWriter } from '../../src/drivers/zookeeper/jute.js'
import { Chroot, checkPath } from '../../src/drivers/zookeeper/paths.js'
import { Touches } from '../../src/drivers/zookeeper/touches.js'
import { ZooKeeperWatches } from '../../src/drivers/zookeeper/watches.js'
import { throwsWith } from '../../src/testing/conformance/checks.js'

describe('jute', () => {
  it('reads what it wrote, and has the bytes of the definition', () => {
    const out = new JuteWriter().int(-2).long(-3n).bool(true).string('ä').buffer(Buffer.alloc(300, 7))
    out.vector(['x', 'y'], (text) => out.string(text))
    const bytes = out.bytes()
    expect(bytes.subarray(0, 19).toString('hex')).toBe('fffffffefffffffffffffffd0100000002c3a4')
    const input = new JuteReader(bytes)
    expect([input.int(), input.long(), input.bool(), input.string()]).toEqual([-2, -3n, true, 'ä'])
    expect(input.buffer()).toEqual(Buffer.alloc(300, 7))
    expect(input.vector(() => input.string())).toEqual(['x', 'y'])
  })

  it('reads null as empty, and refuses what ends too early', () => {
    expect(new JuteReader(Buffer.from('ffffffff', 'hex')).string()).toBe('')
    expect(new JuteReader(Buffer.from('ffffffff', 'hex')).vector(() => 1)).toEqual([])
    for (const cut of ['00', '00000005aabb', '7fffffff']) {
      const bytes = Buffer.from(cut, 'hex')
      expect(() => new JuteReader(bytes).string()).toThrow(RangeError)
    }
    expect(() => new JuteReader(Buffer.alloc(0)).bool()).toThrow(RangeError)
  })
})

describe('frames', () => {
  it.each([1, 3, 7, 1000])('are found in chunks of %d bytes', (size) => {
    const texts = ['', 'one', 'x'.repeat(50), 'three']
    const stream = Buffer.concat(texts.map((text) => frame((out) => out.string(text))))
    const splitter = new FrameSplitter()
    const found: string[] = []
    // A connection reads everything into the same bytes.
    const chunk = Buffer.alloc(size)
    for (let at = 0; at < stream.length; at += size) {
      const count = stream.copy(chunk, 0, at)
      for (const bytes of splitter.push(chunk.subarray(0, count))) found.push(new JuteReader(bytes).string())
      chunk.fill(0xff)
    }
    expect(found).toEqual(texts)
  })

  it('of a length that makes no sense are refused: this is not ZooKeeper', () => {
    expect(() => new FrameSplitter().push(Buffer.from('HTTP/1.1 400 Bad Request'))).toThrow(
      /ZooKeeper server/,
    )
    expect(() => new FrameSplitter().push(Buffer.from('ffffffff', 'hex'))).toThrow(RangeError)
  })
})

describe('the list of servers', () => {
  it('has hosts, ports, IPv6 and a chroot', () => {
    expect(parseServers('a:1, b ,[::1]:3,[fe80::1]/x/y')).toEqual({
      hosts: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2181 },
        { host: '::1', port: 3 },
        { host: 'fe80::1', port: 2181 },
      ],
      chroot: '/x/y',
    })
    expect(parseServers('a').chroot).toBe('/')
    expect(parseServers('a/').chroot).toBe('/')
    for (const bad of ['', 'a,', 'a:0', 'a:70000', '::1', 'a:b', 'a/x/', 'a//x'])
      throwsWith('INVALID_ARGUMENT', () => parseServers(bad))
  })

  it('is tried in random order, each once a round', () => {
    const hosts = ['a', 'b', 'c'].map((host) => ({ host, port: 1 }))
    const orders = new Set<string>()
    for (let run = 0; run < 200; run++) {
      const ring = new HostRing(hosts, Math.random)
      const rounds = Array.from({ length: 6 }, () => ring.next().host).join('')
      expect(rounds.slice(0, 3)).toBe(rounds.slice(3))
      orders.add(rounds.slice(0, 3))
    }
    expect(orders.size).toBe(6)
  })
})

describe('paths', () => {
  it('of sequential nodes may end with a slash', () => {
    expect(checkPath('/a/', true)).toBe('/a/')
    throwsWith('INVALID_ARGUMENT', () => checkPath('/a/'))
    throwsWith('INVALID_ARGUMENT', () => checkPath('/a/./b'))
  })

  it('change at the chroot and back', () => {
    const chroot = new Chroot('/app')
    for (const [inside, outside] of [
      ['/', '/app'],
      ['/a', '/app/a'],
    ] as const) {
      expect(chroot.toServer(inside)).toBe(outside)
      expect(chroot.toClient(outside)).toBe(inside)
    }
    expect(new Chroot('/').toServer('/a')).toBe('/a')
  })
})

it('watches are set again in parts that a server accepts', () => {
  const watches = new ZooKeeperWatches()
  const names = Array.from({ length: 500 }, (_, index) => `/${'x'.repeat(1000)}${index}`)
  for (const name of names) {
    watches.add('data', name, () => {})
    watches.add('children', name, () => {})
  }
  const parts = [...watches.toSetAgain(7n)]
  expect(parts.length).toBeGreaterThan(5)
  expect(parts.flatMap((part) => part.data)).toEqual(names)
  expect(parts.flatMap((part) => part.children)).toEqual(names)
  expect(parts.every((part) => part.data.length + part.children.length < 200)).toBe(true)
  expect([...new ZooKeeperWatches().toSetAgain(7n)]).toEqual([])
})

it('what was answered a tick before a write is known to the leader when it handles that write', () => {
  const touches = new Touches(1000, 200)
  expect(touches.knownAt(1001)).toBe(1000)
  touches.answered(1010, 1015)
  expect(touches.knownAt(1214)).toBe(1000)
  expect(touches.knownAt(1215)).toBe(1010)
  // Close together: remembered as the first of them.
  touches.answered(1300, 1301)
  touches.answered(1302, 1303)
  touches.answered(1400, 1401)
  expect(touches.knownAt(1510)).toBe(1300)
  expect(touches.knownAt(1601)).toBe(1400)
  expect(touches.knownAt(9999)).toBe(1400)
})

it('a digest is the one that zkCli makes', () => {
  // https://zookeeper.apache.org/doc/r3.8.0/zookeeperProgrammers.html#sc_BuiltinACLSchemes: base64(sha1(user:password))
  expect(digestAcl('super', 'test').id).toBe('super:D/InIHSb7yEEbrWz8b9l71RjZJU=')
})
