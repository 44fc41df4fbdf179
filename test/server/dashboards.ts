import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import type { Store } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/index.js'
import { type Dashboard, type DashboardOptions, dashboard } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'

export const TOKEN = 'a-token-of-24-characters'

/** A client and a dashboard over one store, for one test. */
export interface Stage {
  readonly locks: Holdfast
  readonly view: Dashboard
  /** A request with the token. */
  get(path: string): Promise<Response>
  /** A change as the page sends it. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

export function stageOf(
  options: DashboardOptions = {},
  store: Store = memory(),
  client: HoldfastOptions = {},
): Stage {
  const locks = new Holdfast(store, client)
  const view = dashboard(locks, { token: TOKEN, ...options })
  onTestFinished(async () => {
    await view.close()
    await locks.close({ drain: 0 })
  })
  const url = (path: string): string => `http://localhost/${path}`
  const authorization = `Bearer ${TOKEN}`
  return {
    locks,
    view,
    get: (path) => view.fetch(new Request(url(path), { headers: { authorization } })),
    post: (path, body, headers = {}) =>
      view.fetch(
        new Request(url(path), {
          method: 'POST',
          body: JSON.stringify(body),
          headers: {
            authorization,
            'content-type': 'application/json',
            'x-holdfast-change': '1',
            ...headers,
          },
        }),
      ),
  }
}

/** A monotonic clock that only `pass` moves; timers are those of the machine. */
export function stoppedClock(): { env: Env; pass(ms: number): void } {
  let now = systemEnv.now()
  return {
    env: { ...systemEnv, now: () => now },
    pass: (ms) => {
      now += ms
    },
  }
}

/** A server of `node:http` on a free port, until the test ends. */
export async function listen(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, server }
}

/** One event of a stream. */
export interface ServerEvent {
  readonly event: string
  readonly data: never
}

/** The events of a stream as they come; leaving the loop closes it. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent, void, void> {
  let text = ''
  const decoder = new TextDecoder()
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
        text = text.slice(end + 2)
        if (event !== undefined) yield { event, data: JSON.parse(data ?? '') as never }
      }
    }
  } finally {
    await reader.cancel()
  }
}
