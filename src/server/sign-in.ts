import type { Audit } from './audit.js'
import { Buckets } from './buckets.js'
import { checkFields, type HttpCall, json, readJson } from './call.js'
import { COOKIE, type Guard } from './guard.js'
import type { Route } from './router.js'
import type { Space } from './spaces.js'

/** Attempts that are written down: an attack must not fill the disk. */
const ATTEMPTS = { burst: 100, perSecond: 1 }

/** `POST login` and `POST logout`, by which the page gets a cookie and gives it back. */
export function signInRoutes(guard: Guard, audit: Audit, { name: space, context }: Space): Route[] {
  const attempts = new Buckets(context.engine.env, ATTEMPTS)
  const post = (path: string, answer: (call: HttpCall) => Promise<Response>): Route => ({
    method: 'POST',
    path,
    access: 'anybody',
    answer: (call) => {
      guard.checkSite(call.request, call.url)
      return answer(call)
    },
  })
  return [
    post('login', async (call) => {
      const subject = { who: call.peer.address, action: 'login', space, resource: '', detail: '' }
      const value = await audit.around(
        () => subject,
        () => attempts.take(call.peer.address ?? ''),
        async () => {
          const body = await readJson(call.request)
          checkFields(body, ['token'])
          return guard.login(body['token'], call.peer)
        },
      )
      return json({ user: 'token' }, { headers: { 'set-cookie': cookie(call, value) } })
    }),
    post('logout', async (call) =>
      json({ user: null }, { headers: { 'set-cookie': `${cookie(call, '')}; Max-Age=0` } }),
    ),
  ]
}

function cookie({ request, url, base }: HttpCall, value: string): string {
  const isSecure = url.protocol === 'https:' || request.headers.get('x-forwarded-proto') === 'https'
  return `${COOKIE}=${value}; Path=${base}/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}
