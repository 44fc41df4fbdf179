import type { HttpCall, Peer } from './call.js'
import type { Guard } from './guard.js'
import { Problem, problemResponse } from './problems.js'
import type { Router } from './router.js'

/** On every answer. The page has no inline script or style, and loads nothing from elsewhere. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

/** From a request to an answer: finds the route, lets the guard decide, and adds the headers. */
export class Handler {
  readonly #router: Router
  readonly #guard: Guard
  readonly #basePath: string | null

  constructor(router: Router, guard: Guard, basePath: string | null) {
    this.#router = router
    this.#guard = guard
    this.#basePath = basePath
  }

  async handle(request: Request, peer: Peer): Promise<Response> {
    const response = await this.#answer(request, peer).catch(problemResponse)
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value)
    if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store')
    if (request.method !== 'HEAD') return response
    await response.body?.cancel()
    return new Response(null, response)
  }

  async #answer(request: Request, peer: Peer): Promise<Response> {
    const url = new URL(request.url)
    const base = this.#basePath ?? peer.mount ?? ''
    if (base !== '' && url.pathname === base) return redirect(`${base}/${url.search}`)
    if (!url.pathname.startsWith(`${base}/`)) throw new Problem('NOT_FOUND', 'There is nothing at this path')
    const { route, params } = this.#router.find(request.method, url.pathname.slice(base.length + 1))
    const call: HttpCall = { request, url, params, peer, base, user: null }
    if (route.access === 'audited') return route.answer(call)
    this.#guard.checkHost(call)
    if (route.access === 'anybody') return route.answer(call)
    this.#guard.checkSite(call)
    return route.answer({ ...call, user: await this.#guard.user(call) })
  }
}

/** Relative addresses of the page need the slash at the end. */
function redirect(location: string): Response {
  return new Response(null, { status: 308, headers: { location } })
}
