import { type Fenced, fenceOf, refuseStale } from '../fenced.js'
import { fenceHeaders } from './header.js'
import { PROBLEM_TYPE, STALE_TYPE } from './problem.js'

/**
 * `fetch` under a hold: sends its fence, and throws STALE_FENCE if the server refuses it. Every
 * other response is returned as it is.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { fencedFetch } from 'holdfast/fence'
 *
 * export async function save(hold: Hold, body: string) {
 *   const response = await fencedFetch(hold, 'https://example.com/report', { method: 'PUT', body })
 *   if (!response.ok) throw new Error(`not saved: ${response.status}`)
 * }
 * ```
 */
export async function fencedFetch(
  hold: Fenced,
  input: string | URL | Request,
  init: RequestInit = {},
  /** A replacement for `fetch`, such as one that logs or retries. */
  fetcher: typeof fetch = fetch,
): Promise<Response> {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
  for (const [name, value] of Object.entries(fenceHeaders(hold))) headers.set(name, value)
  const response = await fetcher(input, { ...init, headers })
  if (response.status === 409 && response.headers.get('content-type')?.startsWith(PROBLEM_TYPE))
    refuseStale(hold, await newestIn(response, hold))
  return response
}

/** The newest fence in a refusal; 0 if the conflict has another cause. */
async function newestIn(response: Response, hold: Fenced): Promise<number> {
  // The caller may want to read the body of another problem.
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => null)
  const { type, newestFence } = Object(problem) as { type?: unknown; newestFence?: unknown }
  if (type !== STALE_TYPE) return 0
  // It is a refusal also if it names no fence, or another resource that the server checks as well.
  return Math.max(typeof newestFence === 'number' ? newestFence : 0, fenceOf(hold) + 1)
}
