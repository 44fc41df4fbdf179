import type { Audit, AuditSubject } from './audit.js'
import { checkFields, type HttpCall, json, readJson } from './call.js'
import { clearCookie, setCookie } from './cookies.js'
import type { Guard } from './guard.js'
import type { Route } from './router.js'

/** `POST login` and `POST logout`, by which the page gets a cookie and gives it back. */
export function signInRoutes(guard: Guard, audit: Audit, space: string): Route[] {
  const login = async (call: HttpCall): Promise<Response> => {
    const about = { action: 'login', space, resource: '', detail: '' }
    const subject: AuditSubject = { who: call.peer.address, ...about, isUser: false }
    const cookie = await audit.around(subject, async () => {
      guard.checkHost(call)
      guard.checkSite(call)
      const body = await readJson(call.request)
      checkFields(body, ['token'])
      const granted = guard.login(body['token'], call.peer)
      subject.isUser = true
      return granted
    })
    return json({ user: 'token' }, { headers: { 'set-cookie': setCookie(call, cookie) } })
  }
  const logout = (call: HttpCall): Response => {
    guard.checkSite(call)
    return json({ user: null }, { headers: { 'set-cookie': clearCookie(call, guard.cookie) } })
  }
  return [
    { method: 'POST', path: 'login', access: 'audited', answer: login },
    { method: 'POST', path: 'logout', access: 'anybody', answer: logout },
  ]
}
