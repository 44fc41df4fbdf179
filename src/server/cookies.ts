import { createHash } from 'node:crypto'
import type { HttpCall } from './call.js'

/** The cookie of a browser that has signed in. */
export interface Cookie {
  readonly name: string
  readonly value: string
}

/**
 * What the browser keeps: not the token itself, so that it is of no use to other clients. A browser
 * sends cookies to all ports of a host. By the name, a server knows those that are meant for it.
 */
export function cookieFor(token: string): Cookie {
  const hash = (what: string): string => createHash('sha256').update(`${what}\0${token}`).digest('hex')
  return { name: `holdfast_token_${hash('name').slice(0, 8)}`, value: hash('holdfast cookie') }
}

/** What the browser sends. A server at a path above may have a cookie of that name, too. */
export function cookieValues(request: Request, cookie: Cookie): string[] {
  return (request.headers.get('cookie') ?? '').split(';').flatMap((part) => {
    const [name, value] = part.trim().split('=', 2)
    return name === cookie.name && value !== undefined ? [value] : []
  })
}

export function setCookie({ request, url, base }: HttpCall, { name, value }: Cookie): string {
  const isSecure = url.protocol === 'https:' || request.headers.get('x-forwarded-proto') === 'https'
  return `${name}=${value}; Path=${base}/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

export function clearCookie(call: HttpCall, { name }: Cookie): string {
  return `${setCookie(call, { name, value: '' })}; Max-Age=0`
}
