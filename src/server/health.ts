import { type HttpCall, json } from './call.js'
import { type Guard, isFromThisMachine } from './guard.js'
import type { Route } from './router.js'
import type { Spaces } from './spaces.js'

/** An answer of the store is good for so long: anybody may ask, and must not load the store. */
const ANSWER_FOR_MS = 1000

/** `healthz`: the process is up. `readyz`: the store answers. */
export function healthRoutes(spaces: Spaces, guard: Guard): Route[] {
  let last: { readonly at: number; readonly reason: Promise<string | null> } | null = null
  const reason = (): Promise<string | null> => {
    const { env } = spaces.home.context.engine
    if (last === null || env.now() - last.at > ANSWER_FOR_MS)
      last = { at: env.now(), reason: spaces.home.locks.ping().then(() => null, messageOf) }
    return last.reason
  }
  const get = (path: string, answer: (call: HttpCall) => Promise<Response>): Route => ({
    method: 'GET',
    path,
    access: 'anybody',
    answer,
  })
  return [
    get('healthz', async () => json({ status: 'up' })),
    get('readyz', async (call) => {
      const why = await reason()
      if (why === null) return json({ status: 'ready' })
      const isTold =
        isFromThisMachine(call.request, call.peer) ||
        (await guard.user(call).then(
          () => true,
          () => false,
        ))
      return json({ status: 'unavailable', ...(isTold ? { reason: why } : {}) }, { status: 503 })
    }),
  ]
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
