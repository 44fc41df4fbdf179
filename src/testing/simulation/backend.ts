import type { Store } from '../../contract/store.js'
import type { Cut, Faults } from '../network.js'
import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'

/** The clock of a process may run at most this much off, well within what the engine allows for. */
export const MOST_DRIFT = 0.004
/** The least and the most that a message takes. In a slow network of a mixed world it is more. */
export const LATENCY_MS = [0.2, 3] as const
const SLOW_MS = 300
const CUTS: readonly Cut[] = ['both', 'requests', 'replies']

/** What the clients of a simulated world lock on, and what can go wrong with it. */
export interface Backend {
  /** The store as that process sees it. */
  from(process: VirtualProcess): Store
  /** Lets something happen to a server, for about that long. */
  disturb(forMs: number): void
  /** Cuts a process off for a while, in one direction or both. */
  cutFor(process: VirtualProcess, ms: number): void
  /** Changes how well the network works from now on. */
  changeWeather(): void
  /** Ends all faults. */
  heal(): void
  /** Lets as many servers fail as the store should survive. Left out: it survives none. */
  weaken?(): void
  /** The lines that still have claims. */
  leftOver(): Promise<string[]>
}

export function pauseFor(world: VirtualWorld, process: VirtualProcess, ms: number): void {
  process.pause()
  world.after(ms, () => process.resume())
}

export function randomCut(random: () => number): Cut {
  return CUTS[Math.floor(random() * CUTS.length)] ?? 'both'
}

/** Good or bad, each half of the time. */
export function randomWeather(random: () => number, isMixed: boolean): Partial<Faults> {
  const isBad = random() < 0.5
  const rate = (most: number): number => (isBad ? random() * most : 0)
  return {
    lossRate: rate(0.3),
    pushLossRate: rate(0.8),
    doubleRate: rate(0.3),
    lateRate: rate(0.2),
    hangRate: rate(0.5),
    ...(isMixed ? { latencyMs: [LATENCY_MS[0], LATENCY_MS[1] + rate(SLOW_MS)] } : {}),
  }
}
