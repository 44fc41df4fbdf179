import { invalid } from '../base/errors.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import type { AuditEntry } from './shapes.js'

/** The options of `dashboard`. */
export interface DashboardOptions {
  /**
   * The secret that opens the dashboard, of at least 16 characters. Clients send it as
   * `Authorization: Bearer …`; the page asks for it once.
   */
  token?: string | undefined
  /**
   * Decides by the request itself, for example by the session of your application. Gives the user,
   * whose name the audit log shows, or null to refuse.
   */
  authorize?: ((request: Request) => { user: string } | null | Promise<{ user: string } | null>) | undefined
  /**
   * Answers without a token or `authorize`, but only requests from this machine: the address of the
   * client must be a loopback address, and the `Host` header must name one. Default false: one of
   * the other two is required.
   */
  allowLoopback?: boolean | undefined
  /**
   * Lets users break holds, cancel waiters, resize semaphores, and use the lock API. Default false.
   */
  allowChanges?: boolean | undefined
  /** Lets clients use the lock API, `v1/`. Default: as `allowChanges`. */
  allowLocks?: boolean | undefined
  /**
   * The path under which the handler is mounted, such as `'/locks'`. Default: what Express tells,
   * otherwise the root.
   */
  basePath?: string | undefined
  /**
   * Is called just before every change, and with what became of it; of a refused one, once. If it
   * returns a promise, the change waits for it. If it throws or rejects before a change, the change
   * is not made. The last 200 results are also kept in memory.
   */
  audit?: ((entry: AuditEntry) => unknown) | undefined
  /** Figures that `metrics` shows below its own, such as those of `prometheus()`. Default: none. */
  metrics?: { text(): string } | undefined
  /** The space to show first, where a store is given instead of a client. Default `'default'`. */
  space?: string | undefined
  /** How many event streams may be open at once. Default 2,000. */
  maxStreams?: number | undefined
  /** How many requests of the lock API may wait at once. Default 2,000. */
  maxWaits?: number | undefined
}

const DASHBOARD_OPTIONS: OptionNames<DashboardOptions> = {
  token: true,
  authorize: true,
  allowLoopback: true,
  allowChanges: true,
  allowLocks: true,
  basePath: true,
  audit: true,
  metrics: true,
  space: true,
  maxStreams: true,
  maxWaits: true,
}

const SHORTEST_TOKEN = 16
const MOST_STREAMS = 2000
const MOST_WAITS = 2000

/** The options, checked, with the defaults. */
export interface ServerOptions {
  readonly token: string | null
  readonly authorize: DashboardOptions['authorize']
  readonly allowChanges: boolean
  readonly allowLocks: boolean
  /** Without a slash at its end; null: as the framework says. */
  readonly basePath: string | null
  readonly audit: DashboardOptions['audit']
  readonly metrics: DashboardOptions['metrics']
  readonly space: string | undefined
  readonly maxStreams: number
  readonly maxWaits: number
}

export function checkDashboardOptions(options: DashboardOptions): ServerOptions {
  checkOptions(options, DASHBOARD_OPTIONS, "{ token: 'a long secret' }")
  const { token, authorize, allowLoopback = false, allowChanges = false } = options
  if (token !== undefined) checkToken(token)
  if (authorize !== undefined && typeof authorize !== 'function')
    throw invalid('authorize must be a function that takes a Request')
  if (token === undefined && authorize === undefined && !allowLoopback)
    throw invalid(
      'dashboard() needs a token or an authorize function; for this machine only, set allowLoopback: true',
    )
  return {
    token: token ?? null,
    authorize,
    allowChanges,
    allowLocks: options.allowLocks ?? allowChanges,
    basePath: options.basePath === undefined ? null : checkBasePath(options.basePath),
    audit: options.audit,
    metrics: options.metrics,
    space: options.space,
    maxStreams: atLeastOne('maxStreams', options.maxStreams ?? MOST_STREAMS),
    maxWaits: atLeastOne('maxWaits', options.maxWaits ?? MOST_WAITS),
  }
}

/** Refuses secrets that can be guessed, or that no header can carry. */
function checkToken(token: unknown): string {
  if (typeof token !== 'string' || token.length < SHORTEST_TOKEN)
    throw invalid(
      `The token must have at least ${SHORTEST_TOKEN} characters; make one with: openssl rand -hex 24`,
    )
  if (!/^[\x21-\x7e]+$/.test(token))
    throw invalid('The token must consist of printable ASCII characters without spaces')
  return token
}

function checkBasePath(path: unknown): string {
  const trimmed = typeof path === 'string' ? path.replace(/\/+$/, '') : null
  if (trimmed === null || !/^(?:\/[\w.~-]+)*$/.test(trimmed))
    throw invalid("basePath must be a path such as '/locks'")
  return trimmed
}

function atLeastOne(name: string, value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 1)
    throw invalid(`${name} must be a whole number of at least 1`)
  return value as number
}
