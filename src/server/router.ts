import { invalid } from '../base/errors.js'
import type { HttpCall } from './call.js'
import { Problem } from './problems.js'

/** What a path answers. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the mount path: `api/resources/{name}`. */
  readonly path: string
  /**
   * Who may ask: `anybody`, or only users that are let in. An `audited` route asks the guard
   * itself, so that refusals are written down.
   */
  readonly access: 'anybody' | 'users' | 'audited'
  readonly answer: (call: HttpCall) => Response | Promise<Response>
}

interface Found {
  readonly route: Route
  readonly params: Record<string, string>
}

/** Finds the route of a request in a fixed table. No path reaches a file system. */
export class Router {
  readonly #routes: readonly { readonly route: Route; readonly segments: readonly string[] }[]

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((route) => ({ route, segments: route.path.split('/') }))
  }

  /** `path`: below the mount path, without a slash in front. */
  find(method: string, path: string): Found {
    const asked = method === 'HEAD' ? 'GET' : method
    const segments = path.split('/').map(decode)
    const matches = this.#routes.flatMap(({ route, segments: pattern }) => {
      const params = match(pattern, segments)
      return params ? [{ route, params }] : []
    })
    if (matches.length === 0) throw new Problem('NOT_FOUND', 'There is nothing at this path')
    const found = matches.find(({ route }) => route.method === asked)
    if (found) return found
    const allow = [...new Set(matches.map(({ route }) => route.method))].join(', ')
    throw new Problem('METHOD_NOT_ALLOWED', `This path knows only ${allow}`, { allow })
  }
}

function match(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null
  const params: Record<string, string> = {}
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index] ?? ''
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? []
    if (name !== undefined && segment !== '') params[name] = segment
    else if (part !== segment) return null
  }
  return params
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw invalid('The path is not encoded correctly; encode a name with encodeURIComponent')
  }
}
