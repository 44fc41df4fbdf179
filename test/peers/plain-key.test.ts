import { expect, it } from 'vitest'
import { now } from '../../src/testing/conformance/checks.js'
import { describeWithPeer } from './crew.js'
import type { PeerName } from './peer.js'

/** Long enough for a turn on a busy machine: the peers do not renew. */
const LEASE_MS = 20_000
const SHORT_LEASE_MS = 1000
const TURNS = 25

const LIBRARIES: readonly { peer: PeerName; kind: string }[] = [
  { peer: 'redis-py', kind: 'redis-py' },
  { peer: 'go', kind: 'redsync' },
  { peer: 'go', kind: 'redislock' },
]

for (const { peer: name, kind } of LIBRARIES)
  describeWithPeer(name, `one plain key with ${kind}`, (crew) => {
    it('counts exactly, and everybody gets the lock', async () => {
      const [peer, ours] = [await crew.peer(name), await crew.peer('ours')]
      const count = crew.newCount()
      const args = [LEASE_MS, count.folder, TURNS] as const
      await Promise.all([
        peer.ask('a', 'count', kind, 'door', ...args),
        peer.ask('b', 'count', kind, 'door', ...args),
        ours.ask('a', 'count', 'plain', 'door', ...args),
        ours.ask('b', 'count', 'plain', 'door', ...args),
      ])
      expect(count.value).toBe(4 * TURNS)
      expect(await crew.server.cli('exists', 'door')).toBe('0')
    })

    it('goes over when its holder is killed, and not before the lease ends', async () => {
      for (const [victim, mine, other] of [
        [name, kind, 'ours'],
        ['ours', 'plain', name],
      ] as const) {
        const holder = await crew.ownPeer(victim)
        const since = now()
        await holder.ask('a', 'lock', mine, 'vault', SHORT_LEASE_MS)
        holder.kill()
        const next = await crew.peer(other)
        const theirs = other === 'ours' ? 'plain' : kind
        await next.ask('a', 'lock', theirs, 'vault', LEASE_MS)
        expect(now() - since).toBeGreaterThanOrEqual(SHORT_LEASE_MS)
        await next.ask('a', 'unlock', theirs, 'vault')
      }
    })

    it('a peer that stood still beyond its lease leaves our lock alone', async () => {
      const [peer, ours] = [await crew.ownPeer(name), await crew.peer('ours')]
      await peer.ask('a', 'lock', kind, 'gate', SHORT_LEASE_MS)
      peer.kill('SIGSTOP')
      await ours.ask('a', 'lock', 'plain', 'gate', LEASE_MS)
      const key = await crew.server.cli('get', 'gate')
      peer.kill('SIGCONT')
      await peer.ask('a', 'unlock', kind, 'gate').catch(() => {})
      expect(await crew.server.cli('get', 'gate')).toBe(key)
      expect(await ours.ask('a', 'valid', 'gate')).toBe('true false true')
      await ours.ask('a', 'unlock', 'plain', 'gate')
    })

    it('we know that we stood still beyond our lease, and leave the lock of the peer alone', async () => {
      const [peer, ours] = [await crew.peer(name), await crew.ownPeer('ours')]
      await ours.ask('a', 'lock', 'plain', 'yard', SHORT_LEASE_MS)
      ours.kill('SIGSTOP')
      await peer.ask('a', 'lock', kind, 'yard', LEASE_MS)
      const key = await crew.server.cli('get', 'yard')
      ours.kill('SIGCONT')
      expect(await ours.ask('a', 'valid', 'yard')).toBe('false true false')
      expect(await ours.ask('a', 'unlock', 'plain', 'yard')).toBe('released false')
      expect(await crew.server.cli('get', 'yard')).toBe(key)
      await peer.ask('a', 'unlock', kind, 'yard')
    })
  })
