import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { eventually, inTime, pass } from '../../src/testing/conformance/checks.js'
import { LIMIT_MS, ROUNDS } from '../faults/runs.js'
import { clientAt, SESSION_MS } from '../faults/zookeeper.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'

const HOLDER = join(import.meta.dirname, '../faults/zookeeper-holder.mjs')

interface Held {
  readonly type: 'held'
  readonly fence: number
}

interface Over {
  readonly type: 'over'
  readonly fence: number
  readonly from: number
  readonly to: number
  readonly lostAt: number | null
  readonly isTold: boolean
}

/** A process that holds the lock now and then. */
class Holder {
  readonly over: Over[] = []
  readonly child: ChildProcess
  fence = 0

  constructor(url: string, resource: string) {
    this.child = fork(HOLDER, [url, resource])
    this.child.on('message', (message: Held | Over) => {
      this.fence = message.type === 'held' ? message.fence : 0
      if (message.type === 'over') this.over.push(message)
    })
  }
}

describeOn('zookeeper', 'faults of the clients of ZooKeeper', () => {
  let ensemble: ZooKeeperEnsemble
  const holders: Holder[] = []
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  })
  afterEach(() => {
    for (const { child } of holders.splice(0)) child.kill('SIGKILL')
  })
  afterAll(() => ensemble?.stop())

  const start = (resource: string): void => {
    const url = `zookeeper://${ensemble.address}?sessionTimeout=${SESSION_MS}ms&tick=200ms`
    for (let count = 0; count < 3; count++) holders.push(new Holder(url, resource))
  }
  const holder = async (): Promise<Holder> => {
    let found: Holder | undefined
    await eventually('a holder', () => {
      found = holders.find(({ fence }) => fence > 0)
      return found !== undefined
    })
    if (!found) throw new Error('nobody holds')
    return found
  }
  const grantsOfOthers = (one: Holder): number =>
    holders.filter((each) => each !== one).reduce((sum, { over }) => sum + over.length, 0)

  /** In the order of the fences nobody is believed in before the one before has ceased to be. */
  const judge = (): void => {
    const all = holders.flatMap(({ over }) => over).toSorted((a, b) => a.fence - b.fence)
    const overlaps = all.flatMap((later, index) => {
      const earlier = all[index - 1]
      return earlier && later.from <= earlier.to ? [{ earlier, later }] : []
    })
    expect(overlaps).toEqual([])
    expect(new Set(all.map(({ fence }) => fence)).size).toBe(all.length)
  }

  it('stopped for longer than its session while it holds', { timeout: LIMIT_MS }, async () => {
    start('stopped')
    let lost = 0
    for (let round = 0; round < 2 * ROUNDS; round++) {
      await eventually('everybody served', () => holders.every(({ over }) => over.length > round))
      const one = await holder()
      one.child.kill('SIGSTOP')
      const [before, own] = [grantsOfOthers(one), one.over.length]
      await eventually('the others go on', () => grantsOfOthers(one) >= before + 3)
      await pass(SESSION_MS / 3)
      one.child.kill('SIGCONT')
      await eventually('its own report, and further turns', () => one.over.length > own + 2)
      lost += one.over.filter(({ lostAt }) => lostAt !== null).length
    }
    for (const { child } of holders) child.send('end')
    await inTime('their end', Promise.all(holders.map(({ child }) => once(child, 'exit'))))
    expect(holders.map(({ child }) => child.exitCode)).toEqual([0, 0, 0])
    console.log(`${holders.flatMap(({ over }) => over).length} grants, ${lost} of them lost`)
    judge()
  })

  it('no hold is believed in for longer than its session, also when it was waited for', async () => {
    const [one, other] = [clientAt(ensemble.address, 1), clientAt(ensemble.address, 2)]
    const first = await one.mutex('term').acquire({ lease: '1m' })
    const next = other.mutex('term').acquire({ lease: '1m' })
    expect(first.remainingMs).toBeLessThanOrEqual(SESSION_MS + 1)
    await first.release()
    const second = await inTime('the next one', next)
    expect(second.remainingMs).toBeLessThanOrEqual(SESSION_MS + 2)
    await one.close()
    await other.close()
  })

  it('kill -9 of whoever holds', { timeout: LIMIT_MS }, async () => {
    start('killed')
    await eventually('everybody served', () => holders.every(({ over }) => over.length > 0))
    const one = await holder()
    one.child.kill('SIGKILL')
    const before = grantsOfOthers(one)
    await eventually('the others go on', () => grantsOfOthers(one) >= before + 3)
    judge()
  })
})
