import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { inTime } from '../../src/testing/conformance/checks.js'
import { LockManager } from '../../src/web-locks/index.js'
import { LIMIT_MS, ROUNDS } from '../faults/runs.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'

const ROUNDS_EACH = 5 * ROUNDS

/** Each round has a client and a space that are new: no connection has been opened, and no node of the space is there. */
describeOn('zookeeper', 'the first requests of a new client in a new space at ZooKeeper', () => {
  let server: ZooKeeperServer
  let spaces = 0
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())

  /** What each round gives, with as many clients as it wants. */
  const inNewSpaces = async <T>(
    clientCount: number,
    round: (...sites: LockManager[]) => Promise<T>,
  ): Promise<T[]> => {
    const outcomes: T[] = []
    for (let count = 0; count < ROUNDS_EACH; count++) {
      const space = `new-${spaces++}`
      const store = (number: number) =>
        zookeeper(server.address, { sessionTimeout: 10_000 + number, tick: 200 })
      const clients = Array.from(
        { length: clientCount },
        (_, number) => new Holdfast(store(number), { space }),
      )
      outcomes.push(await inTime('the round', round(...clients.map((client) => new LockManager(client)))))
      await Promise.all(clients.map((client) => client.close()))
    }
    return outcomes
  }
  const expectEach = <T>(outcomes: readonly T[], expected: T): void => {
    expect(outcomes).toEqual(outcomes.map(() => expected))
  }

  describe.each([
    ['at once', () => null],
    ['turn by turn', () => turn()],
  ])('asked for %s', (_, between) => {
    /** Makes the requests in this order; resolves when all are over. */
    const make = async (requests: readonly (() => Promise<unknown>)[]): Promise<void> => {
      const made: Promise<unknown>[] = []
      for (const request of requests) {
        made.push(request())
        const pause = between()
        if (pause) await pause
      }
      await Promise.all(made)
    }

    it('writers come in the order in which they ask', { timeout: LIMIT_MS }, async () => {
      const numbers = [0, 1, 2, 3, 4, 5]
      const outcomes = await inNewSpaces(1, async (locks) => {
        const order: number[] = []
        await make(numbers.map((number) => () => locks.request('door', () => void order.push(number))))
        return order.join()
      })
      expectEach(outcomes, numbers.join())
    })

    it('readers before a writer come before it, those after it later', { timeout: LIMIT_MS }, async () => {
      const [before, after] = ['abcde', 'vwxyz']
      const outcomes = await inNewSpaces(1, async (locks) => {
        const order: string[] = []
        const read = (name: string) => () =>
          locks.request('door', { mode: 'shared' }, () => void order.push(name))
        const write = () => locks.request('door', () => void order.push('writer'))
        await make([...[...before].map(read), write, ...[...after].map(read)])
        return [order.slice(0, 5).sort().join(''), order[5], order.slice(6).sort().join('')]
      })
      expectEach(outcomes, [before, 'writer', after])
    })

    it.each(['exclusive', 'shared'] as const)(
      'a try (%s) does not overtake a request that was made before it',
      { timeout: LIMIT_MS },
      async (mode) => {
        const outcomes = await inNewSpaces(1, async (locks) => {
          const tried = deferred<boolean>()
          await make([
            () => locks.request('door', () => tried.promise),
            async () =>
              tried.resolve(
                await locks.request('door', { mode, ifAvailable: true }, (lock) => lock !== null),
              ),
          ])
          return tried.promise
        })
        expectEach(outcomes, false)
      },
    )
  })

  it.each([1, 2])(
    'a steal has the lock at once, of %i clients',
    { timeout: LIMIT_MS },
    async (clientCount) => {
      const outcomes = await inNewSpaces(clientCount, async (one, other = one) => {
        let isOver = (): void => {}
        const end = new Promise<void>((resolve) => {
          isOver = resolve
        })
        const robbed = one
          .request('door', () => end)
          .then(
            () => 'ended',
            () => 'stolen',
          )
        const stolen = await other.request('door', { steal: true }, () => 'mine')
        isOver()
        await robbed
        return stolen
      })
      expectEach(outcomes, 'mine')
    },
  )

  it('a steal that is made at once takes the lock from the request before it', {
    timeout: LIMIT_MS,
  }, async () => {
    const outcomes = await inNewSpaces(1, async (locks) => {
      const robbed = locks.request('door', () => new Promise(() => {})).catch(({ name }) => name)
      return [await locks.request('door', { steal: true }, () => 'mine'), await robbed]
    })
    expectEach(outcomes, ['mine', 'AbortError'])
  })
})
