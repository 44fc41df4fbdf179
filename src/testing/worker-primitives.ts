import { appendFile } from 'node:fs/promises'
import { systemEnv } from '../base/env.js'
import type { MeetOptions } from '../primitives/barrier.js'
import type { CampaignOptions } from '../primitives/election.js'
import type { Holdfast } from '../primitives/holdfast.js'
import type { Leader, Leadership } from '../primitives/leadership.js'
import type { MultiHold } from '../primitives/multi-hold.js'
import type { OnceOptions } from '../primitives/once.js'
import type { AcquireOptions } from '../primitives/options.js'
import { now } from './clock.js'

type Plain<T> = Omit<T, 'signal'>

/** From when until when somebody had all that it asked for. */
export interface Meal {
  readonly names: readonly string[]
  readonly from: number
  readonly until: number
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemEnv.timer(ms, resolve, { keepAlive: true })
  })
}

/**
 * What a process of the conformance suite can do with the primitives that are no locks, and with
 * several locks at once.
 */
export function primitiveApi(client: () => Holdfast, complain: (error: unknown) => void) {
  const leaderships: Leadership[] = []
  const multiHolds: MultiHold[] = []
  const observed: Leader[] = []
  const meals: Meal[] = []

  async function dine(names: readonly string[], options: Plain<AcquireOptions>): Promise<void> {
    for (;;) {
      await client()
        .all(names)
        .run(async () => {
          const from = now()
          await pause(1)
          meals.push({ names, from, until: now() })
        }, options)
    }
  }

  async function observe(name: string): Promise<void> {
    for await (const leader of client().election(name).observe()) observed.push(leader)
  }

  return {
    async countDown(name: string, total: number, times: number): Promise<void> {
      for (let time = 0; time < times; time++) await client().latch(name, total).countDown()
    },

    async waitForLatch(name: string, total: number): Promise<void> {
      await client().latch(name, total).wait()
    },

    /** When this party came and passed in each round, by the machine's monotonic clock. */
    async meet(name: string, parties: number, rounds: number, options: Plain<MeetOptions>) {
      const meetings: { arrivedAt: number; passedAt: number }[] = []
      for (let round = 0; round < rounds; round++) {
        const arrivedAt = now()
        await client().barrier(name, parties).meet(options)
        meetings.push({ arrivedAt, passedAt: now() })
      }
      return meetings
    },

    async campaign(name: string, options: Plain<CampaignOptions>) {
      const leadership = await client().election(name).campaign(options)
      leaderships.push(leadership)
      return { leadership: leaderships.length - 1, term: leadership.term }
    },

    async resign(number: number): Promise<boolean> {
      return (await leaderships[number]?.resign()) ?? false
    },

    async leads(number: number): Promise<{ isLeader: boolean; isAborted: boolean }> {
      const leadership = leaderships[number]
      return {
        isLeader: leadership?.isLeader ?? false,
        isAborted: leadership?.signal.aborted ?? true,
      }
    },

    async observe(name: string): Promise<void> {
      observe(name).catch(complain)
    },

    async observed(): Promise<Leader[]> {
      return observed
    },

    /** The work writes down that it ran, and stays inside for a while. */
    async once(name: string, options: OnceOptions, file: string, keepMs: number): Promise<boolean> {
      const { ran } = await client().once(name, options, async (hold) => {
        await appendFile(file, `${hold.fence}\n`)
        await pause(keepMs)
      })
      return ran
    },

    async acquireAll(names: readonly string[], options: Plain<AcquireOptions>) {
      const hold = await client().all(names).acquire(options)
      multiHolds.push(hold)
      return { hold: multiHolds.length - 1, fences: hold.fences }
    },

    async releaseAll(number: number): Promise<boolean> {
      return (await multiHolds[number]?.release()) ?? false
    },

    /** Takes all of the names, stays for a moment, gives them back, for ever. */
    async dine(names: readonly string[], options: Plain<AcquireOptions>): Promise<void> {
      dine(names, options).catch(complain)
    },

    async meals(): Promise<Meal[]> {
      return meals
    },
  }
}
