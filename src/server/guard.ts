import { createHash, timingSafeEqual } from 'node:crypto'
import type { Env } from '../base/env.js'
import { Buckets } from './buckets.js'
import type { HttpCall, Peer } from './call.js'
import { type Cookie, cookieFor, cookieValues } from './cookies.js'
import type { ServerOptions } from './options.js'
import { Problem } from './problems.js'

/** Wrong tokens of one address: so many at once, then one each six seconds. */
const FAILURES = { burst: 10, perSecond: 1 / 6 }

/** Decides who may ask. Knows tokens, cookies, hosts and sites, and nothing of locks. */
export class Guard {
  /** Without a token, no browser gets it. */
  readonly cookie: Cookie
  readonly #options: ServerOptions
  readonly #failures: Buckets

  constructor(env: Env, options: ServerOptions) {
    this.cookie = cookieFor(options.token ?? '')
    this.#options = options
    this.#failures = new Buckets(env, FAILURES)
  }

  /**
   * Without a token, another site could reach the server through a host name of its own that it
   * points to 127.0.0.1. The browser then sends that name.
   */
  checkHost({ request, url, peer }: HttpCall): void {
    if (!this.#isOpenToLoopback) return
    const host = request.headers.get('host')
    const names = [url.hostname, ...(host === null ? [] : [hostnameOf(host)])]
    if (names.every(isLoopbackName) && isFromThisMachine(request, peer)) return
    throw new Problem(
      'FORBIDDEN',
      'Without a token this server answers only this machine, by the names localhost, 127.0.0.1 and [::1]; start it with a token',
    )
  }

  /** Refuses what the page of another site asks for. */
  checkSite({ request, url }: HttpCall): void {
    const site = request.headers.get('sec-fetch-site')
    const isForeign = site !== null && site !== 'same-origin' && site !== 'none'
    if (isForeign || !isOwnOrigin(request, url))
      throw new Problem('CROSS_SITE', 'Requests from the pages of other sites are refused')
  }

  /** The name of the user; null: not known. Throws if nobody is let in. */
  async user(call: HttpCall): Promise<string | null> {
    if (this.#isOpenToLoopback) return null
    const { request, peer } = call
    const granted = await this.#options.authorize?.(request)
    if (granted) return String(granted.user)
    const given = bearerOf(request)
    const cookies = given === null ? cookieValues(request, this.cookie) : []
    if (this.#options.token === null || (given === null && cookies.length === 0)) throw unauthorized()
    const isRight = (each: string): boolean => isEqual(each, this.cookie.value)
    if (given !== null ? this.#isToken(given) : cookies.some(isRight)) return 'token'
    throw this.#wrongToken(peer)
  }

  /** Exchanges the token for the cookie of the page. */
  login(token: unknown, peer: Peer): Cookie {
    if (typeof token === 'string' && this.#isToken(token)) return this.cookie
    throw this.#wrongToken(peer)
  }

  /** Whether requests need no token, because only this machine can send them. */
  get #isOpenToLoopback(): boolean {
    return this.#options.token === null && this.#options.authorize === undefined
  }

  #isToken(given: string): boolean {
    const { token } = this.#options
    return token !== null && isEqual(given, token)
  }

  /**
   * Counted after the comparison: behind a proxy all clients share an address, and the right token
   * must renew its holds while somebody else sends wrong ones.
   */
  #wrongToken({ address }: Peer): Problem {
    if (this.#failures.take(address ?? '')) return unauthorized()
    return new Problem('TOO_MANY_REQUESTS', 'Too many wrong tokens; wait a minute', { 'retry-after': '60' })
  }
}

/** Takes the same time however much is equal: hashes of the same length are compared. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(hash(one), hash(other))
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function bearerOf(request: Request): string | null {
  const match = /^Bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')
  return match?.[1] ?? null
}

function unauthorized(): Problem {
  const message = 'Send the token as Authorization: Bearer …, or sign in on the page'
  return new Problem('UNAUTHORIZED', message, { 'www-authenticate': 'Bearer realm="holdfast"' })
}

function isOwnOrigin(request: Request, url: URL): boolean {
  const origin = request.headers.get('origin')
  if (origin === null) return true
  const own = [request.headers.get('host'), request.headers.get('x-forwarded-host'), url.host]
  return URL.canParse(origin) && own.includes(new URL(origin).host)
}

function hostnameOf(host: string): string {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : ''
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || isLoopback(name.replace(/^\[(.*)\]$/, '$1'))
}

/** Not if the address is unknown, nor if a proxy on this machine says that it forwards. */
export function isFromThisMachine(request: Request, { address }: Peer): boolean {
  if (address === null || !isLoopback(address)) return false
  return !['forwarded', 'x-forwarded-for', 'x-forwarded-host'].some((name) => request.headers.has(name))
}

/** Whether only this machine can be behind that address. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/i.test(address) || address === '::1'
}
