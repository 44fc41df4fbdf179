import type { Env } from '../base/env.js'
import type { Store } from '../contract/store.js'
import { historyArbitrary } from './histories/arbitraries.js'
import { runHistory } from './histories/run.js'

/** The options of `storeHistories`. */
export interface HistoryOptions {
  /**
   * A store with nothing in it, or one on which a new space has nothing in it. `env` is its time.
   */
  makeStore(env: Env): Promise<Store> | Store
  /** How many histories. */
  runs?: number
  /** How long a history may be. */
  commandsPerRun?: number
  /** Repeats the run of a failure, which printed it. */
  seed?: number
  /** Goes straight to the history that failed. A failure prints it with its seed. */
  path?: string
  /**
   * `injected` (the default): the store takes its time from `env`; time passes within a history,
   * and durations are compared. `server`: the store's clock is not ours; nothing lapses within a
   * history, and durations are not compared.
   */
  clock?: 'injected' | 'server'
  /**
   * Whether fences grow in the whole store (the default), or per resource. `group`: per resource,
   * and in any order among those (readers) that are granted together.
   */
  fences?: 'store' | 'resource' | 'group'
  /**
   * How long a push may take, in real milliseconds, before it counts as missing. Default: 10 s, as
   * a busy machine may stand still.
   */
  pushPatienceMs?: number
}

/**
 * Compares a store with the model of the contract (`model.ts`) over generated histories: several
 * clients claim, pulse, release, steal, adopt, evict, cancel, resize, read, write and list while
 * time passes; after each step the reply, the pushes to each client and the lines must be what the
 * model says. Needs the package `fast-check`.
 *
 * @example
 * ```ts
 * import { memory } from 'holdfast/memory'
 * import { storeHistories } from 'holdfast/testing'
 *
 * await storeHistories({ makeStore: (env) => memory({ env }), runs: 100 })
 * ```
 */
export async function storeHistories(options: HistoryOptions): Promise<void> {
  const fc = await import('fast-check')
  const { makeStore, clock = 'injected', fences = 'store', seed, path } = options
  const patience = { ms: options.pushPatienceMs ?? 10_000 }
  const histories = historyArbitrary(fc, clock, options.commandsPerRun ?? 50)
  const property = fc.asyncProperty(histories, (commands) =>
    runHistory(commands, { makeStore, clock, fences, patience }),
  )
  const result = await fc.check(property, {
    numRuns: options.runs ?? 200,
    ...(seed === undefined ? {} : { seed }),
    ...(path === undefined ? {} : { path }),
  })
  if (!result.failed) return
  const { errorInstance } = result
  const story = errorInstance instanceof Error ? errorInstance.message : String(errorInstance)
  const again = `{ seed: ${result.seed}, path: '${result.counterexamplePath ?? ''}' }`
  throw new Error(
    `The store differs from the model in history ${result.numRuns}. Run again with ${again}.\n` +
      `The shortest history found (${result.numShrinks} times shortened):\n\n${story}`,
  )
}
