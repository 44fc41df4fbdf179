import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid } from '../base/errors.js'
import type { Store } from '../contract/store.js'
import { Holdfast } from '../primitives/holdfast.js'
import { type ApiContext, apiRoutes } from './api.js'
import { Audit } from './audit.js'
import type { Peer } from './call.js'
import { changeRoutes } from './changes.js'
import { Guard } from './guard.js'
import { Handler } from './handler.js'
import { healthRoutes } from './health.js'
import { lockRoutes } from './lock-api.js'
import { metricsRoutes } from './metrics.js'
import { bridge } from './node.js'
import { openapiRoutes } from './openapi.js'
import { checkDashboardOptions, type DashboardOptions } from './options.js'
import { pageRoutes } from './page.js'
import { type Route, Router } from './router.js'
import { signInRoutes } from './sign-in.js'
import { Spaces } from './spaces.js'
import { Streams } from './streams.js'

/** The dashboard and the API of a store as one handler, to mount in any server. */
export interface Dashboard {
  /**
   * Answers a request of fetch style. Never rejects. Only the caller knows the address of the
   * client: without it, wrong tokens of all clients are counted together, and `allowLoopback` lets
   * nobody in.
   */
  fetch(
    request: Request,
    client?: {
      /** The address of the other end of the connection, such as `'10.0.0.7'`. */
      readonly address?: string | undefined
    },
  ): Promise<Response>
  /** The same for `node:http`, Express and NestJS. Needs no `this`. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** Ends the event streams, and the clients that it has opened. Your own client stays open. */
  close(): Promise<void>
}

/**
 * The dashboard and the API of a store as one handler. It needs a `token` or an `authorize`
 * function, and changes nothing unless `allowChanges` says so. See `docs/server.md`.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { Holdfast } from 'holdfast'
 * import { dashboard } from 'holdfast/dashboard'
 *
 * const locks = await Holdfast.open('sqlite:./locks.db')
 * const view = dashboard(locks, { token: process.env['DASHBOARD_TOKEN'] })
 * const server = createServer(view.node).listen(8470, '127.0.0.1')
 * process.once('SIGTERM', () => {
 *   server.close()
 *   void view.close()
 * })
 * ```
 */
export function dashboard(source: Holdfast | Store, options: DashboardOptions = {}): Dashboard {
  const checked = checkDashboardOptions(options)
  const spaces = new Spaces(...clientOf(source, checked.space))
  const { env } = spaces.home.context.engine
  const guard = new Guard(env, checked)
  const audit = new Audit(env, checked.audit)
  const streams = new Streams(env, checked.maxStreams)
  const router = new Router(routesOf({ options: checked, spaces, streams, audit }, guard))
  const handler = new Handler(router, guard, checked.basePath)
  const handle = (request: Request, peer: Peer): Promise<Response> => handler.handle(request, peer)
  return {
    fetch: (request, client) => {
      // Servers that take `fetch` as it is pass an argument of their own.
      const address = typeof client?.address === 'string' ? client.address : null
      return handle(request, { address, mount: null })
    },
    node: (request, response) => bridge(request, response, handle),
    async close() {
      streams.close()
      await spaces.close()
    },
  }
}

/** The whole table of paths. */
export function routesOf(context: ApiContext, guard: Guard): Route[] {
  const { spaces, audit } = context
  return [
    ...pageRoutes(),
    ...signInRoutes(guard, audit, spaces.home.name),
    ...healthRoutes(spaces, guard),
    ...apiRoutes(context),
    ...changeRoutes(context, guard),
    ...lockRoutes(context),
    ...metricsRoutes(context),
    ...openapiRoutes(),
  ]
}

/** A client that the caller has made stays the caller's. */
function clientOf(source: Holdfast | Store, space: string | undefined): [Holdfast, boolean] {
  if (source instanceof Holdfast) {
    if (space !== undefined) throw invalid('A client has its space already; give a store to choose another')
    return [source, false]
  }
  return [new Holdfast(source, { space }), true]
}
