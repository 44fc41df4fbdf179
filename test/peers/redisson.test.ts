import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { redissonLock } from '../../src/stores/redis/index.js'
import { eventually, inTime, now, rejectsWith, Watched } from '../../src/testing/conformance/checks.js'
import { type Crew, describeWithPeer } from './crew.js'
import type { PeerProcess } from './peer.js'

const LEASE_MS = 20_000
const SHORT_LEASE_MS = 1000
const TURNS = 30
/** A waiter that heard nothing would look again after 5 seconds, or when the lease ends. */
const PUSH_WITHIN_MS = 4000
const LOCKS = ['mutex', 'fair', 'fenced', 'write'] as const
type Kind = (typeof LOCKS)[number] | 'read'

describeWithPeer('redisson', 'locks shared with Redisson', (crew) => {
  const openLocks = () => redissonLock(clientOf(crew))
  const lockOf = (kind: Kind, name: string) => {
    const locks = openLocks()
    if (kind === 'read' || kind === 'write') return locks.readWrite(name)[kind]
    return locks[kind](name)
  }

  it.each(LOCKS)('%s: counts exactly, and everybody gets the lock', async (kind) => {
    const [peer, ours] = [await crew.peer('redisson'), await crew.peer('ours')]
    const count = crew.newCount()
    const args = [kind, `count-${kind}`, LEASE_MS, count.folder, TURNS] as const
    await Promise.all([
      peer.ask('a', 'count', ...args),
      peer.ask('b', 'count', ...args),
      ours.ask('a', 'count', ...args),
      ours.ask('b', 'count', ...args),
    ])
    expect(count.value).toBe(4 * TURNS)
    expect(await keysOf(crew, `count-${kind}`)).toEqual(
      kind === 'fenced' ? ['redisson_lock_token:{count-fenced}'] : [],
    )
  })

  it.each(LOCKS)('%s: each wakes the other by a message', async (kind) => {
    const peer = await crew.peer('redisson')
    const lock = lockOf(kind, `push-${kind}`)
    const toUs: number[] = []
    const toPeer: number[] = []
    for (let round = 0; round < 5; round++) {
      await peer.ask('a', 'lock', kind, `push-${kind}`, 0)
      const ours = new Watched(lock.acquire())
      await subscribed(crew, `push-${kind}`)
      const freedAt = now()
      await peer.ask('a', 'unlock', kind, `push-${kind}`)
      const hold = await inTime('our hold', ours.promise)
      toUs.push(ours.settledAt - freedAt)

      const next = new Watched(peer.ask('b', 'lock', kind, `push-${kind}`, 0))
      await waitsForMessage(peer, 'b')
      const releasedAt = now()
      await hold.release()
      await next.promise
      toPeer.push(next.settledAt - releasedAt)
      await peer.ask('b', 'unlock', kind, `push-${kind}`)
    }
    console.log(`${kind}: woken by Redisson after ${figures(toUs)}, Redisson by us after ${figures(toPeer)}`)
    expect(Math.max(...toUs, ...toPeer)).toBeLessThan(PUSH_WITHIN_MS)
  })

  it('locks of all kinds go over when Redisson is killed, and not before the lease ends', async () => {
    const peer = await crew.ownPeer('redisson')
    const since = now()
    for (const kind of LOCKS) await peer.ask('a', 'lock', kind, `killed-${kind}`, SHORT_LEASE_MS)
    await peer.ask('a', 'lock', 'read', 'killed-read', SHORT_LEASE_MS)
    peer.kill()
    const holds = await Promise.all(LOCKS.map((kind) => lockOf(kind, `killed-${kind}`).acquire()))
    expect(now() - since).toBeGreaterThanOrEqual(SHORT_LEASE_MS)
    holds.push(await lockOf('write', 'killed-read').acquire())
    for (const hold of holds) expect(await hold.release()).toBe(true)
  })

  it('locks of all kinds go over when we are killed, and not before the lease ends', async () => {
    const [peer, ours] = [await crew.peer('redisson'), await crew.ownPeer('ours')]
    const since = now()
    for (const kind of LOCKS) await ours.ask('a', 'lock', kind, `ours-${kind}`, SHORT_LEASE_MS)
    await ours.ask('a', 'lock', 'read', 'ours-read', SHORT_LEASE_MS)
    ours.kill()
    for (const kind of LOCKS) await peer.ask('a', 'lock', kind, `ours-${kind}`, 0)
    await peer.ask('a', 'lock', 'write', 'ours-read', 0)
    expect(now() - since).toBeGreaterThanOrEqual(SHORT_LEASE_MS)
    for (const kind of LOCKS) await peer.ask('a', 'unlock', kind, `ours-${kind}`)
  })

  it('a Redisson that stood still beyond its lease leaves our lock alone', async () => {
    const peer = await crew.ownPeer('redisson')
    const lock = openLocks().mutex('gate')
    await peer.ask('a', 'lock', 'mutex', 'gate', SHORT_LEASE_MS)
    peer.kill('SIGSTOP')
    const hold = await lock.acquire()
    const owner = await crew.server.cli('hgetall', 'gate')
    peer.kill('SIGCONT')
    await expect(peer.ask('a', 'unlock', 'mutex', 'gate')).rejects.toThrow('not locked by current thread')
    expect(await crew.server.cli('hgetall', 'gate')).toBe(owner)
    expect(await hold.release()).toBe(true)
  })

  it('we know that we stood still beyond our lease, and leave the lock of Redisson alone', async () => {
    const [peer, ours] = [await crew.peer('redisson'), await crew.ownPeer('ours')]
    await ours.ask('a', 'lock', 'mutex', 'yard', SHORT_LEASE_MS)
    ours.kill('SIGSTOP')
    await peer.ask('a', 'lock', 'mutex', 'yard', 0)
    const owner = await crew.server.cli('hgetall', 'yard')
    ours.kill('SIGCONT')
    expect(await ours.ask('a', 'valid', 'yard')).toBe('false true false')
    expect(await ours.ask('a', 'unlock', 'mutex', 'yard')).toBe('released false')
    expect(await crew.server.cli('hgetall', 'yard')).toBe(owner)
    await peer.ask('a', 'unlock', 'mutex', 'yard')
  })

  it('honours the counts of Redisson, and Redisson ours', async () => {
    const peer = await crew.peer('redisson')
    const lock = openLocks().mutex('nested')
    await peer.ask('a', 'lock', 'mutex', 'nested', 0)
    await peer.ask('a', 'lock', 'mutex', 'nested', 0)
    expect(await peer.ask('a', 'holds', 'mutex', 'nested')).toBe('2')
    await peer.ask('a', 'unlock', 'mutex', 'nested')
    expect(await lock.tryAcquire()).toBeNull()
    await peer.ask('a', 'unlock', 'mutex', 'nested')

    await lock.run(async () => {
      await lock.run(async () => {
        expect(await crew.server.cli('hvals', 'nested')).toBe('2')
      })
      expect(await crew.server.cli('hvals', 'nested')).toBe('1')
      expect(await peer.ask('a', 'try', 'mutex', 'nested')).toBe('false')
    })
    expect(await peer.ask('a', 'try', 'mutex', 'nested')).toBe('true')
    await peer.ask('a', 'unlock', 'mutex', 'nested')
  })

  it('learns that Redisson has broken its lock by force', async () => {
    const peer = await crew.peer('redisson')
    const hold = await openLocks().mutex('forced').acquire({ lease: 600 })
    expect(await peer.ask('a', 'force', 'mutex', 'forced')).toBe('true')
    await eventually('the loss', () => hold.signal.aborted)
    expect(await crew.server.cli('exists', 'forced')).toBe('0')
  })

  it('serves a fair lock in the order of arrival, across both', async () => {
    const peer = await crew.peer('redisson')
    const lock = openLocks().fair('ticket')
    const served: string[] = []
    const first = await lock.acquire()
    const turn = async (who: string, task: string): Promise<void> => {
      if (who === 'ours') return lock.run(() => void served.push(`${who} ${task}`))
      await peer.ask(task, 'lock', 'fair', 'ticket', 0)
      served.push(`${who} ${task}`)
      await peer.ask(task, 'unlock', 'fair', 'ticket')
    }
    const waiting = () => crew.server.cli('llen', 'redisson_lock_queue:{ticket}')
    const order = ['ours', 'redisson', 'ours', 'redisson', 'redisson', 'ours']
    const turns: Promise<void>[] = []
    for (const [index, who] of order.entries()) {
      turns.push(turn(who, `t${index}`))
      await eventually('in line', async () => (await waiting()) === String(index + 1))
    }
    await first.release()
    await Promise.all(turns)
    expect(served).toEqual(order.map((who, index) => `${who} t${index}`))
    expect(await keysOf(crew, 'ticket')).toEqual([])
  })

  it('leaves the fair line when the wait ends, so that Redisson does not wait for it', async () => {
    const peer = await crew.peer('redisson')
    const lock = openLocks().fair('left')
    await peer.ask('a', 'lock', 'fair', 'left', 0)
    await rejectsWith('ACQUIRE_TIMEOUT', lock.acquire({ wait: 100 }))
    expect(await crew.server.cli('llen', 'redisson_lock_queue:{left}')).toBe('0')
    const controller = new AbortController()
    const waiting = rejectsWith('ABORTED', lock.acquire({ signal: controller.signal }))
    await eventually(
      'in line',
      async () => (await crew.server.cli('llen', 'redisson_lock_queue:{left}')) === '1',
    )
    controller.abort()
    await waiting
    await eventually(
      'out of line',
      async () => (await crew.server.cli('llen', 'redisson_lock_queue:{left}')) === '0',
    )
    await peer.ask('a', 'unlock', 'fair', 'left')
    expect(await keysOf(crew, 'left')).toEqual([])
  })

  it('reads together with Redisson, and a writer of either waits for the readers of both', async () => {
    const peer = await crew.peer('redisson')
    const { read, write } = openLocks().readWrite('table')
    const reader = await read.acquire()
    await peer.ask('a', 'lock', 'read', 'table', 0)
    const second = await read.acquire()
    const writer = new Watched(write.acquire())
    expect(await peer.ask('b', 'tryFor', 'write', 'table', 100)).toBe('false')
    await reader.release()
    // The lock outlives the first reader by the lease of the others.
    expect(Number(await crew.server.cli('pttl', 'table'))).toBeGreaterThan(10_000)
    await second.release()
    expect(writer.isSettled).toBe(false)
    await peer.ask('a', 'unlock', 'read', 'table')
    const written = await inTime('the writer', writer.promise)
    expect(await peer.ask('b', 'try', 'read', 'table')).toBe('false')
    const readers = [peer.ask('b', 'lock', 'read', 'table', 0), peer.ask('c', 'lock', 'read', 'table', 0)]
    const third = read.acquire()
    await subscribed(crew, 'table', 2)
    for (const task of ['b', 'c']) await waitsForMessage(peer, task)
    await written.release()
    await Promise.all(readers)
    await (await third).release()
    await Promise.all(['b', 'c'].map((task) => peer.ask(task, 'unlock', 'read', 'table')))
    expect(await keysOf(crew, 'table')).toEqual([])
  })

  it('lets a writer read inside, goes on as a reader, and refuses the other way', async () => {
    const peer = await crew.peer('redisson')
    const { read, write } = openLocks().readWrite('config')
    const inner = await write.run(async () => {
      const hold = await read.acquire()
      expect(await peer.ask('a', 'try', 'read', 'config')).toBe('false')
      return hold
    })
    expect(await peer.ask('a', 'try', 'read', 'config')).toBe('true')
    expect(await peer.ask('b', 'try', 'write', 'config')).toBe('false')
    await peer.ask('a', 'unlock', 'read', 'config')
    await inner.release()
    await rejectsWith(
      'UPGRADE_REFUSED',
      read.run(() => write.acquire()),
    )
    expect(await keysOf(crew, 'config')).toEqual([])
  })

  it('fences grow across both', async () => {
    const peer = await crew.peer('redisson')
    const lock = openLocks().fenced('account')
    const fences: number[] = []
    for (let round = 0; round < 3; round++) {
      fences.push(await lock.run(async ({ fence }) => fence))
      fences.push(Number(await peer.ask('a', 'token', 'account')))
      await peer.ask('a', 'unlock', 'fenced', 'account')
    }
    expect(fences).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('shares the permits of a semaphore', async () => {
    const peer = await crew.peer('redisson')
    const seats = openLocks().semaphore('seats')
    expect(await peer.ask('a', 'setPermits', 'seats', 3)).toBe('true')
    expect(await seats.trySetPermits(5)).toBe(false)
    const two = await seats.acquire({ permits: 2 })
    expect(await peer.ask('a', 'permits', 'seats')).toBe('1')
    expect(await seats.tryAcquire({ permits: 2 })).toBeNull()
    const waiting = new Watched(peer.ask('a', 'acquire', 'seats', 2))
    await subscribed(crew, 'seats')
    await two.release()
    await waiting.promise
    await rejectsWith('ACQUIRE_TIMEOUT', seats.acquire({ permits: 2, wait: 50 }))
    const next = new Watched(seats.acquire({ permits: 3 }))
    await subscribed(crew, 'seats')
    const freedAt = now()
    await peer.ask('a', 'release', 'seats', 2)
    await (await inTime('the permits', next.promise)).release()
    expect(next.settledAt - freedAt).toBeLessThan(PUSH_WITHIN_MS)
    expect(await seats.available()).toBe(3)
  })

  it('counts a latch down together, and both are told', async () => {
    const peer = await crew.peer('redisson')
    const latch = openLocks().latch('ready')
    await latch.wait()
    expect(await latch.trySetCount(2)).toBe(true)
    expect(await peer.ask('a', 'setCount', 'ready', 5)).toBe('false')
    const waiting = [new Watched(peer.ask('a', 'await', 'ready')), new Watched(latch.wait())]
    await rejectsWith('ACQUIRE_TIMEOUT', latch.wait({ wait: 50 }))
    expect(await latch.countDown()).toBe(1)
    await subscribed(crew, 'ready', 2)
    const openedAt = now()
    await peer.ask('b', 'countDown', 'ready')
    for (const each of waiting) {
      await each.promise
      expect(each.settledAt - openedAt).toBeLessThan(PUSH_WITHIN_MS)
    }
    expect(await latch.count()).toBe(0)
    expect(await latch.countDown()).toBe(0)
    expect(await crew.server.cli('exists', 'ready')).toBe('0')
  })
})

const clients = new WeakMap<Crew, Redis>()

/** Closed with the server, which ends after the tests of the file. */
function clientOf(crew: Crew): Redis {
  const known = clients.get(crew)
  if (known) return known
  const client = new Redis(crew.server.port, { retryStrategy: () => null })
  client.on('error', () => {})
  clients.set(crew, client)
  return client
}

/** Resolves when that many programs hear of the lock. */
async function subscribed(crew: Crew, name: string, programs = 1): Promise<void> {
  await eventually('a subscription', async () => {
    const channels = (await crew.server.cli('pubsub', 'channels', `*{${name}}*`)).split('\n').filter(Boolean)
    const counts = await Promise.all(
      channels.map(async (channel) =>
        Number((await crew.server.cli('pubsub', 'numsub', channel)).split('\n')[1]),
      ),
    )
    return counts.reduce((sum, count) => sum + count, 0) >= programs
  })
}

/**
 * Resolves when the task of Redisson waits for a message. A message to all that comes after its
 * last try and before that wakes nobody: it then looks again when the lease ends.
 */
async function waitsForMessage(peer: PeerProcess, task: string): Promise<void> {
  await eventually('a waiting task', async () => (await peer.ask('look', 'waits', task)) === 'true')
}

/** The keys of a lock, without those that only remember a call. */
async function keysOf(crew: Crew, name: string): Promise<string[]> {
  const keys = (await crew.server.cli('keys', `*${name}*`)).split('\n').filter(Boolean)
  return keys.filter((key) => !key.includes(':holdfast:') && !key.includes('unlock_latch')).sort()
}

function figures(ms: readonly number[]): string {
  const sorted = ms.toSorted((a, b) => a - b)
  return `${(sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1)} ms (at most ${sorted.at(-1)?.toFixed(1)} ms)`
}
