import type { HttpCall } from './call.js'

const COOKIE = 'holdfast_token'

/** What the browser sends. A server at a path above may have a cookie of that name, too. */
export function cookiesOf(request: Request): string[] {
  return (request.headers.get('cookie') ?? '').split(';').flatMap((part) => {
    const [name, value] = part.trim().split('=', 2)
    return name === COOKIE && value !== undefined ? [value] : []
  })
}

export function setCookie({ request, url, base }: HttpCall, value: string): string {
  const isSecure = url.protocol === 'https:' || request.headers.get('x-forwarded-proto') === 'https'
  return `${COOKIE}=${value}; Path=${base}/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

export function clearCookie(call: HttpCall): string {
  return `${setCookie(call, '')}; Max-Age=0`
}
