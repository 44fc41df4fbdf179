import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** A real server on a free port, until the test ends. Gives its URL. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Runs a fetch-style handler in a server of Node. */
export function serveFetch(handler: (request: Request) => Promise<Response>): Promise<string> {
  return serve((incoming, outgoing) => {
    void toRequest(incoming)
      .then(handler)
      .then(async (response) => {
        outgoing.writeHead(response.status, Object.fromEntries(response.headers))
        outgoing.end(await response.text())
      })
      .catch((error) => outgoing.writeHead(500).end(String(error)))
  })
}

async function toRequest(incoming: IncomingMessage): Promise<Request> {
  const { method = 'GET', url = '/' } = incoming
  const headers = incoming.headers as Record<string, string>
  const body = method === 'GET' ? null : await text(incoming)
  return new Request(new URL(url, 'http://localhost'), { method, headers, body })
}
