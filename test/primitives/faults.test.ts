import { describe, expect, it } from 'vitest'
import type { Hold } from '../../src/primitives/hold.js'
import type { Leader, Leadership } from '../../src/primitives/leadership.js'
import { type Actor, Stage } from './stage.js'

const SEEDS = Array.from({ length: Number(process.env['HOLDFAST_SEEDS'] ?? 25) }, (_, index) => index + 1)
const BAD_MS = 20_000
const LIMIT_MS = 300_000

/** Runs the scenario with every seed; a failure names its seed. */
async function withSeeds(actors: number, scenario: (stage: Stage) => Promise<void>): Promise<void> {
  for (const seed of SEEDS) {
    try {
      await scenario(new Stage(seed, actors))
    } catch (error) {
      throw new Error(`Seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
}

describe('with pauses, partitions, and messages that are lost, late and doubled', () => {
  it(
    'a latch counts every count-down once',
    () =>
      withSeeds(4, async (stage) => {
        const perActor = 6
        const total = stage.actors.length * perActor
        const party = async (actor: Actor): Promise<void> => {
          const latch = actor.locks.latch('ready', total + 1)
          for (let time = 0; time < perActor; time++) {
            await stage.pause(actor, stage.random() * 2000)
            await latch.countDown()
          }
        }
        await stage.play(Promise.all(stage.actors.map(party)), BAD_MS)
        const latches = stage.actors.map(({ locks }) => locks.latch('ready', total + 1))
        const waits = Promise.all(latches.map((latch) => latch.wait()))
        expect(await stage.world.until(latches[0]?.count() ?? Promise.reject())).toBe(1)
        await stage.world.until(latches[1]?.countDown() ?? Promise.reject())
        await stage.world.until(waits, 60_000)
      }),
    LIMIT_MS,
  )

  it(
    'nobody passes a barrier before all have come to it, round after round',
    () =>
      withSeeds(3, async (stage) => {
        const rounds = 8
        const begun = stage.actors.map(() => 0)
        const party = async (actor: Actor, index: number): Promise<void> => {
          for (let round = 1; round <= rounds; round++) {
            await stage.pause(actor, stage.random() * 1500)
            begun[index] = round
            await actor.locks.barrier('phase', 3).meet({ lease: '2s' })
            for (const other of begun) expect(other, `round ${round}: ${begun}`).toBeGreaterThanOrEqual(round)
          }
        }
        await stage.play(Promise.all(stage.actors.map(party)), BAD_MS)
      }),
    LIMIT_MS,
  )

  it(
    'parties that give up and come back meet in the right number',
    async () => {
      let total = 0
      await withSeeds(4, async (stage) => {
        let passed = 0
        let isOver = false
        const party = async (actor: Actor): Promise<void> => {
          const barrier = actor.locks.barrier('phase', 2)
          while (!isOver) {
            const isMet = await barrier.meet({ lease: '2s', wait: 50 + stage.random() * 3000 }).then(
              () => true,
              (error) => {
                // Cut off from the store, nobody knows whether the others are there.
                expect(['ACQUIRE_TIMEOUT', 'STORE_UNAVAILABLE']).toContain(error.code)
                return false
              },
            )
            if (isMet) passed++
            await stage.pause(actor, stage.random() * 500)
          }
        }
        stage.world.after(BAD_MS, () => {
          isOver = true
        })
        await stage.play(Promise.all(stage.actors.map(party)), BAD_MS)
        // Parties pass in pairs.
        expect(passed % 2, `${passed} have passed`).toBe(0)
        total += passed
      })
      expect(total).toBeGreaterThan(0)
    },
    LIMIT_MS,
  )

  it(
    'scheduled work is started once for each tick',
    () =>
      withSeeds(4, async (stage) => {
        const runs: number[] = []
        const party = async (actor: Actor): Promise<void> => {
          for (let tick = 0; tick < 5; tick++) {
            await stage.pause(actor, tick * 3000 - actor.process.now() + stage.random() * 300)
            await actor.locks
              .once(`tick ${tick}`, { atLeast: '10m', atMost: '10m', lease: '2s' }, () => runs.push(tick))
              .catch((error) => expect(error).toMatchObject({ code: 'HOLD_LOST' }))
          }
        }
        await stage.play(Promise.all(stage.actors.map(party)), BAD_MS)
        expect(runs.sort()).toEqual([0, 1, 2, 3, 4])
      }),
    LIMIT_MS,
  )

  it(
    'one leads at a time, and observers see every leader in order',
    () =>
      withSeeds(4, async (stage) => {
        const leading = new Set<Leadership>()
        const led: Leader[] = []
        const seen: Leader[] = []
        const stop = new AbortController()
        stage.always(() => {
          const leaders = [...leading].filter(({ isLeader }) => isLeader)
          expect(leaders.length, leaders.map(({ id }) => id).join()).toBeLessThanOrEqual(1)
        })
        const [observer, ...candidates] = stage.actors
        const observe = async (): Promise<void> => {
          const election = observer?.locks.election('boss')
          for await (const leader of election?.observe({ signal: stop.signal }) ?? []) seen.push(leader)
        }
        const stand = async (actor: Actor): Promise<void> => {
          for (let time = 0; time < 6; time++) {
            const leadership = await actor.locks.election('boss').campaign({ id: actor.name, lease: '2s' })
            leading.add(leadership)
            // One that came to know too late need not be announced: another may have been by then.
            if (leadership.isLeader) led.push({ id: actor.name, term: leadership.term })
            await stage.pause(actor, stage.random() * 600)
            await leadership.resign().catch(overdue)
          }
        }
        const observing = observe()
        await stage.world.run(1000)
        await stage.play(Promise.all(candidates.map(stand)), BAD_MS)
        const terms = (leaders: readonly Leader[]): number[] => leaders.map(({ term }) => term)
        await stage.world.run(stage.world.timeMs + 60_000)
        stop.abort()
        await stage.world.until(observing)
        expect(terms(seen)).toEqual([...new Set(terms(seen))].sort((one, other) => one - other))
        expect(terms(seen)).toEqual(expect.arrayContaining(terms(led)))
      }),
    LIMIT_MS,
  )

  it(
    'readers, writers and permits never exceed what there is',
    () =>
      withSeeds(4, async (stage) => {
        const held: Hold[] = []
        stage.always(() => {
          for (const [name, capacity] of [
            ['config', 2 ** 30],
            ['pool', 3],
          ] as const) {
            const valid = held.filter((hold) => hold.resource === name && hold.isValid)
            const used = valid.reduce((sum, { permits }) => sum + permits, 0)
            expect(used, `${valid.length} holds of ${name}`).toBeLessThanOrEqual(capacity)
          }
        })
        const task = async (actor: Actor): Promise<void> => {
          const config = actor.locks.readWrite('config')
          const pool = actor.locks.semaphore('pool', 3)
          for (let time = 0; time < 8; time++) {
            const kind = Math.floor(stage.random() * 4)
            const permits = 1 + Math.floor(stage.random() * 3)
            const options = { lease: '2s' } as const
            const hold = await (kind === 0
              ? config.write.acquire(options)
              : kind === 1
                ? config.read.acquire(options)
                : pool.acquire({ ...options, permits }))
            held.push(hold)
            await stage.pause(actor, stage.random() * 400)
            if (stage.random() < 0.5 && hold.isExclusive) await hold.downgrade().catch(overdue)
            if (stage.random() < 0.5 && kind > 1) await hold.shrink(1).catch(overdue)
            await stage.pause(actor, stage.random() * 400)
            await hold.release().catch(overdue)
          }
        }
        const tasks = stage.actors.flatMap((actor) => [task(actor), task(actor)])
        await stage.play(Promise.all(tasks), BAD_MS)
      }),
    LIMIT_MS,
  )
})

/** Nothing is tried for longer than the hold is valid. */
function overdue(error: { code: string }): void {
  expect(['HOLD_LOST', 'STORE_UNAVAILABLE']).toContain(error.code)
}
