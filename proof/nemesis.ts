import type { Crowd } from './crowd.js'

/**
 * Ends the fault. May resolve with how often it has struck, where that can be counted. A fault that
 * was alone must have struck.
 */
export type Heal = () => Promise<unknown>

/** What a fault may use to choose. All of it comes from the seed. */
export interface Choice {
  /** Between 0 and 1. */
  random(): number
  /** Some of them: at least one, at most half. */
  some<T>(items: readonly T[]): T[]
  one<T>(items: readonly T[]): T
}

/** The name of the time without a fault. */
export const CALM = 'no fault'

/** A kind of fault, and how to end it. */
export interface Nemesis {
  readonly name: string
  /** What it disturbs. Two at a time disturb different things. */
  readonly hits: 'clients' | 'servers' | 'network' | 'clocks' | 'disk' | 'nothing'
  /** How long it lasts after it has begun, in milliseconds. */
  readonly lastsMs: number
  /** While it lasts, the store serves nobody. */
  readonly stopsAll?: boolean
  /** It lasts for so long that some holds must be lost. */
  readonly endsHolds?: boolean
  /**
   * Why a hold from before it has begun may meet one from after: what the store's page says about
   * it. Fences still have to grow.
   */
  readonly excuse?: string
  /** The excuse holds until it is healed. */
  readonly isLossy?: boolean
  begin(crowd: Crowd, choice: Choice): Promise<Heal>
}

/** What happens without a fault, to compare with. Nothing may be lost then, and no call may fail. */
export function calm(leaseMs: number): Nemesis {
  return {
    ...{ name: CALM, hits: 'nothing', lastsMs: 2 * leaseMs },
    begin: async () => async () => {},
  }
}

export function choiceFrom(random: () => number): Choice {
  const one = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  return {
    random,
    one,
    some(items) {
      const count = 1 + Math.floor(random() * Math.floor(items.length / 2))
      return shuffled(items, random).slice(0, count)
    },
  }
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item)
}
