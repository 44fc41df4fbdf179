import type { IncomingMessage, ServerResponse } from 'node:http'
import { HoldfastError, invalid } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import type { Fenced, FenceRegister } from '../fenced.js'
import { FENCE_HEADER, parseFence } from './header.js'
import { type FenceProblem, malformed, missing, PROBLEM_TYPE, problemOf, wrongResource } from './problem.js'

/** The options of `httpGuard`. */
export interface HttpGuardOptions {
  /** true: a request without a fence reaches the handler. Default: it is refused with 428. */
  optional?: boolean | undefined
  /**
   * The resource that a request is about. A fence of another one is refused with 400. Default: the
   * resource in the header. The URL is complete in fetch style, and begins with the path in connect
   * style.
   */
  resource?: ((request: { method: string; url: string }) => string) | undefined
}

/** A fetch-style handler. `fenced` is undefined only with `optional`. */
export type FencedHandler = (request: Request, fenced: Fenced | undefined) => Response | Promise<Response>

/** A request of `node:http`, express or connect, with the fence that came with it. */
export type FencedRequest = IncomingMessage & { fenced?: Fenced; originalUrl?: string }

type Next = (error?: unknown) => void

/**
 * Refuses requests with a stale fence: 409 and a problem document. **By itself this only narrows
 * the window**: a request that passed can be delayed before it writes. So hand the fence to the
 * guarded write of your handler; its STALE_FENCE becomes a 409, too. Made by `httpGuard`.
 */
export class HttpGuard {
  readonly #register: FenceRegister
  readonly #options: HttpGuardOptions

  /** @internal */
  constructor(register: FenceRegister, options: HttpGuardOptions) {
    this.#register = register
    this.#options = options
  }

  /**
   * A fetch-style handler that calls yours only for requests whose fence is not stale.
   *
   * @example
   * ```ts
   * import { httpGuard, memoryGuard } from 'holdfast/fence'
   *
   * export default {
   *   fetch: httpGuard(memoryGuard()).fetch(async (request, fenced) => {
   *     console.log('write under fence', fenced?.fence, await request.text())
   *     return new Response(null, { status: 204 })
   *   }),
   * }
   * ```
   */
  fetch(handler: FencedHandler): (request: Request) => Promise<Response> {
    return async (request) => {
      try {
        const outcome = await this.#admit(request.headers.get(FENCE_HEADER), request)
        if ('status' in outcome) return problemResponse(outcome)
        return await handler(request, outcome.fenced)
      } catch (error) {
        const problem = problemOf(error)
        if (!problem) throw error
        return problemResponse(problem)
      }
    }
  }

  /**
   * Middleware for express, connect and similar frameworks. The fence is in `request.fenced`.
   *
   * @example
   * ```ts
   * import { createServer } from 'node:http'
   * import { type FencedRequest, httpGuard, memoryGuard } from 'holdfast/fence'
   *
   * const guard = httpGuard(memoryGuard())
   * createServer((request: FencedRequest, response) => {
   *   guard.connect(request, response, (error) => {
   *     response.statusCode = error ? 500 : 204
   *     response.end()
   *   })
   * })
   * ```
   */
  readonly connect = (request: FencedRequest, response: ServerResponse, next: Next): void => {
    const header = request.headers[FENCE_HEADER.toLowerCase()]
    const { method = 'GET', originalUrl, url = '/' } = request
    this.#admit(Array.isArray(header) ? header.join(', ') : header, { method, url: originalUrl ?? url }).then(
      (outcome) => {
        if ('status' in outcome) return sendProblem(response, outcome)
        if (outcome.fenced) request.fenced = outcome.fenced
        next()
      },
      (error: unknown) => this.connectError(error, request, response, next),
    )
  }

  /**
   * Error middleware for express: answers the STALE_FENCE of a guarded write with 409, and passes
   * every other error to `next`.
   *
   * @example
   * ```ts
   * import type { HttpGuard } from 'holdfast/fence'
   *
   * export function install(app: { use(middleware: unknown): void }, guard: HttpGuard, routes: unknown) {
   *   app.use(guard.connect)
   *   app.use(routes)
   *   app.use(guard.connectError)
   * }
   * ```
   */
  // Express recognises error middleware by its four parameters.
  readonly connectError = (
    error: unknown,
    _request: IncomingMessage,
    response: ServerResponse,
    next: Next,
  ): void => {
    const problem = response.headersSent ? undefined : problemOf(error)
    if (problem) sendProblem(response, problem)
    else next(error)
  }

  /** The fence of a request that may proceed, or the problem. */
  async #admit(
    header: string | null | undefined,
    request: { method: string; url: string },
  ): Promise<FenceProblem | { fenced: Fenced | undefined }> {
    const { optional = false, resource } = this.#options
    const fenced = readHeader(header)
    if (fenced === undefined) return optional ? { fenced } : missing(FENCE_HEADER)
    if ('status' in fenced) return fenced
    const expected = resource?.({ method: request.method, url: request.url })
    if (expected !== undefined && expected !== fenced.resource)
      return wrongResource(expected, fenced.resource)
    await this.#register.check(fenced)
    return { fenced }
  }
}

/**
 * A guard for an HTTP service, with a register that all its processes share: `sqliteGuard`,
 * `postgresGuard`, `mysqlGuard` or `redisGuard`; `memoryGuard` for a single process.
 *
 * @example
 * ```ts
 * import { httpGuard, type RedisClient, redisGuard } from 'holdfast/fence'
 *
 * export function guardOf(client: RedisClient) {
 *   return httpGuard(redisGuard(client), { resource: ({ url }) => `document:${new URL(url, 'http://localhost').pathname}` })
 * }
 * ```
 */
export function httpGuard(register: FenceRegister, options: HttpGuardOptions = {}): HttpGuard {
  if (typeof register?.check !== 'function')
    throw invalid(
      'httpGuard() needs a register that remembers fences, such as postgresGuard(pool) or memoryGuard()',
    )
  return new HttpGuard(
    register,
    checkOptions(options, { optional: true, resource: true }, '{ optional: true }'),
  )
}

function readHeader(header: string | null | undefined): Fenced | FenceProblem | undefined {
  try {
    return parseFence(header)
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_ARGUMENT') return malformed(error.message)
    throw error
  }
}

function problemResponse(problem: FenceProblem): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { 'content-type': PROBLEM_TYPE },
  })
}

function sendProblem(response: ServerResponse, problem: FenceProblem): void {
  response.statusCode = problem.status
  response.setHeader('content-type', PROBLEM_TYPE)
  response.end(JSON.stringify(problem))
}
