import { invalid } from '../../base/errors.js'
import type { EtcdClient, Operation, OperationResult } from '../../drivers/etcd/index.js'
import { checkFenced, type Fenced, type FenceRegister, refuseStale } from '../fenced.js'

/** As many digits as the highest fence has: etcd compares values byte by byte. */
const DIGITS = 16

/**
 * Where the newest fence of a resource is remembered.
 *
 * @example
 * ```ts
 * import { etcdFenceKey } from 'holdfast/fence'
 *
 * console.log(etcdFenceKey('order:42')) // holdfast-fence/order:42
 * ```
 */
export function etcdFenceKey(resource: string): string {
  return `holdfast-fence/${resource}`
}

/**
 * Guarded writes in etcd; check and writes are one transaction. The fence key is never removed:
 * without it a stale write would pass. Made by `etcdGuard`.
 */
export class EtcdGuard implements FenceRegister {
  readonly #client: Pick<EtcdClient, 'transaction'>

  /** @internal */
  constructor(client: Pick<EtcdClient, 'transaction'>) {
    this.#client = client
  }

  /**
   * Writes one key. Throws STALE_FENCE if a newer fence of the resource was seen.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { EtcdGuard } from 'holdfast/fence'
   *
   * export async function publish(hold: Hold, guard: EtcdGuard) {
   *   await guard.put(hold, 'report/today', JSON.stringify({ total: 12 }))
   * }
   * ```
   */
  async put(hold: Fenced, key: string, value: string | Uint8Array): Promise<void> {
    await this.run(hold, [{ type: 'put', key, value }])
  }

  /**
   * Does all the operations in one transaction, or none: it throws STALE_FENCE if a newer fence of
   * the resource was seen. One result for each operation.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { EtcdGuard } from 'holdfast/fence'
   *
   * export async function move(hold: Hold, guard: EtcdGuard) {
   *   await guard.run(hold, [
   *     { type: 'delete', key: 'jobs/open/7' },
   *     { type: 'put', key: 'jobs/done/7', value: 'by hand' },
   *   ])
   * }
   * ```
   */
  async run(hold: Fenced, operations: readonly Operation[]): Promise<readonly OperationResult[]> {
    const { resource, fence } = checkFenced(hold)
    const key = etcdFenceKey(resource)
    const success: Operation[] = [{ type: 'put', key, value: padded(fence) }, ...operations]
    const { succeeded, results } = await this.#client.transaction({
      compare: [{ key, target: 'create', is: '=', value: 0 }],
      success,
      // A missing key cannot be compared by its value, so there are two steps.
      failure: [
        {
          type: 'txn',
          compare: [{ key, target: 'value', is: '<', value: padded(fence + 1) }],
          success,
          failure: [{ type: 'range', key }],
        },
      ],
    })
    if (succeeded) return results.slice(1)
    const [inner] = results
    if (inner?.succeeded) return inner.results.slice(1)
    const newest = Number(String(inner?.results[0]?.keys[0]?.value))
    refuseStale(hold, newest)
    throw invalid(`The key ${key} holds no fence: ${newest}`)
  }

  /**
   * Checks the fence of a resource and remembers it. Throws STALE_FENCE if a newer one was seen.
   */
  async check(hold: Fenced): Promise<void> {
    await this.run(hold, [])
  }
}

/**
 * Guarded writes in etcd, through a client of `holdfast/etcd/client`.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import type { EtcdClient } from 'holdfast/etcd/client'
 * import { etcdGuard } from 'holdfast/fence'
 *
 * export async function publish(hold: Hold, client: EtcdClient, text: string) {
 *   await etcdGuard(client).put(hold, 'news', text)
 * }
 * ```
 */
export function etcdGuard(client: Pick<EtcdClient, 'transaction'>): EtcdGuard {
  if (typeof client?.transaction !== 'function')
    throw invalid('The guard needs an EtcdClient of holdfast/etcd/client')
  return new EtcdGuard(client)
}

function padded(fence: number): string {
  return String(fence).padStart(DIGITS, '0')
}
