import { HoldfastError } from '../../base/errors.js'
import type { Origin } from '../../contract/store.js'
import type { Master } from './driver.js'
import { explain } from './failures.js'
import type { RedisRunner } from './runner.js'
import { configOf, infoOf } from './server-info.js'

/**
 * Which run of the server answers. In a Cluster, the masters count as one server: a change of any
 * of them is another run.
 */
export class RedisOrigin implements Origin {
  readonly #runner: RedisRunner
  readonly #checkOpen: () => void

  /** `checkOpen` throws once the client is closed. */
  constructor(runner: RedisRunner, checkOpen: () => void) {
    this.#runner = runner
    this.#checkOpen = checkOpen
  }

  get link(): number {
    return this.#runner.link
  }

  async run(): Promise<string | null> {
    this.#checkOpen()
    try {
      const runs = await this.#runner.askMasters(runOf)
      const isLossless = !this.#runner.mayFailOver && runs.every((run) => run.isLossless)
      if (isLossless) return null
      return runs
        .map(({ id }) => id)
        .sort()
        .join(' ')
    } catch (error) {
      throw explain(error)
    }
  }
}

async function runOf(master: Master): Promise<{ id: string; isLossless: boolean }> {
  const info = await infoOf(master)
  const id = info.get('run_id')
  if (id === undefined)
    throw new HoldfastError('UNSUPPORTED', 'This Redis server does not tell its run_id in INFO', {
      store: 'redis',
    })
  // A replica that takes over may lack the latest writes, whatever the master has on disk.
  const isAlone = info.get('role') === 'master' && info.get('connected_slaves') === '0'
  const writesLog = isAlone && info.get('aof_enabled') === '1'
  return { id, isLossless: writesLog && (await configOf(master, 'appendfsync')) === 'always' }
}
