import { invalid } from '../../base/errors.js'
import { checkFenced, type Fenced } from '../fenced.js'
import { encodeName } from '../names.js'

/** The header that carries a fence: the number, a blank, the resource in percent-encoding. */
export const FENCE_HEADER = 'Holdfast-Fence'

/**
 * The header for a request under a hold. Refuses a hold that is not exclusive.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { fenceHeaders } from 'holdfast/fence'
 *
 * export function save(hold: Hold, body: string) {
 *   return fetch('https://example.com/report', { method: 'PUT', body, headers: fenceHeaders(hold) })
 * }
 * ```
 */
export function fenceHeaders(hold: Fenced): Record<string, string> {
  const { resource, fence } = checkFenced(hold)
  return { [FENCE_HEADER]: `${fence} ${encodeName(resource)}` }
}

/**
 * The fence in a header; undefined if there is no header. Throws INVALID_ARGUMENT for other text,
 * also for a header that was sent twice, which arrives as one with a comma.
 *
 * @example
 * ```ts
 * import { parseFence } from 'holdfast/fence'
 *
 * export const fenced = parseFence('1790000000000000 order:42')
 * ```
 */
export function parseFence(header: string | null | undefined): Fenced | undefined {
  if (header === null || header === undefined) return undefined
  const [, fence, name] = /^([1-9]\d{0,15}) ([!-+\--~]+)$/.exec(header) ?? []
  const resource = name === undefined ? undefined : decode(name)
  if (resource === undefined || !Number.isSafeInteger(Number(fence)))
    throw invalid(
      `${FENCE_HEADER} must be a fence, a blank and a percent-encoded resource, such as '1790000000000000 order:42'`,
    )
  return checkFenced({ resource, fence: Number(fence) })
}

function decode(name: string): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}
