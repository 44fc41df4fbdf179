import type { Duration } from '../base/duration.js'

/** The settings of a `Redlock`, and of a call of it. */
export interface Settings {
  /** How much of a duration is taken off for the drift of clocks. At least 0.01, the default. */
  readonly driftFactor: number
  /**
   * With `retryDelay` and `retryJitter`, how long to wait in line: `retryCount × (retryDelay +
   * retryJitter)`. 0: do not wait. -1: wait for ever. Default 10.
   */
  readonly retryCount: number
  /** See `retryCount`. In milliseconds, 200 by default. */
  readonly retryDelay: number
  /** See `retryCount`. In milliseconds, 100 by default. */
  readonly retryJitter: number
  /**
   * `using` extends its lock when less than this is left, in milliseconds. It does so in any case
   * after a third of the duration. Default 500.
   */
  readonly automaticExtensionThreshold: number
}

/** What only Holdfast has. */
export interface HoldfastSettings {
  /**
   * Keeps applications apart that use the same servers. The locks of a `Holdfast` client in the
   * same space are the same locks. Default `'default'`.
   */
  readonly space?: string | undefined
  /** How long the servers may be silent before a call fails. Default `'10s'`. */
  readonly storeTimeout?: Duration | undefined
  /**
   * With several clients: no lock may last longer, and a server that has lost its data takes part
   * again after so long. The same in all processes. Default `'10m'`.
   */
  readonly longestDuration?: Duration | undefined
}

/** Some of the settings. */
export type SomeSettings = { readonly [Name in keyof Settings]?: Settings[Name] | undefined }

export const DEFAULT_SETTINGS: Settings = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
})

/** The given settings, completed by the others. What is not a number counts as left out. */
export function settingsOf(given: SomeSettings | undefined, others: Settings): Settings {
  const numbers = Object.keys(others).map((name) => {
    const key = name as keyof Settings
    return [key, typeof given?.[key] === 'number' ? given[key] : others[key]]
  })
  return Object.fromEntries(numbers)
}

/** How long to wait in line, in place of all the retries. */
export function longestWaitMs({ retryCount, retryDelay, retryJitter }: Settings): number {
  if (retryCount === -1) return Infinity
  // A retry without a pause still takes a round trip.
  return Math.max(0, retryCount) * Math.max(1, retryDelay + retryJitter)
}
