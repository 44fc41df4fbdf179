import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import type { Peer } from './call.js'

/** What frameworks add to a request. */
type FrameworkRequest = IncomingMessage & {
  readonly originalUrl?: unknown
  readonly baseUrl?: unknown
  readonly body?: unknown
}

/** Headers by which a request could speak for the connection itself. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'expect']

/** Answers a request of `node:http` by a handler of fetch style. */
export async function bridge(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handle: (request: Request, peer: Peer) => Promise<Response>,
): Promise<void> {
  const gone = new AbortController()
  // Closed before the answer was complete: the client has left.
  outgoing.once('close', () => gone.abort())
  const { baseUrl } = incoming as FrameworkRequest
  const request = toRequest(incoming, gone.signal)
  if (request === null) return send(new Response(null, { status: 400 }), outgoing, gone.signal)
  const response = await handle(request, {
    address: incoming.socket.remoteAddress ?? null,
    mount: typeof baseUrl === 'string' ? baseUrl : null,
  })
  await send(response, outgoing, gone.signal)
}

/** null: the address or the `Host` header cannot be read. */
function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | null {
  const { originalUrl } = incoming as FrameworkRequest
  const path = typeof originalUrl === 'string' ? originalUrl : (incoming.url ?? '/')
  const isSecure = 'encrypted' in incoming.socket && incoming.socket.encrypted === true
  const origin = `${isSecure ? 'https' : 'http'}://${incoming.headers.host ?? 'localhost'}`
  if (!path.startsWith('/') || !URL.canParse(origin + path)) return null
  const method = incoming.method ?? 'GET'
  const hasBody = method !== 'GET' && method !== 'HEAD'
  try {
    return new Request(origin + path, {
      method,
      headers: headersOf(incoming),
      signal,
      ...(hasBody ? { body: bodyOf(incoming), duplex: 'half' } : {}),
    })
  } catch {
    // A method that fetch forbids, such as TRACE.
    return null
  }
}

function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  for (const [name, values] of Object.entries(incoming.headersDistinct))
    if (!HOP_BY_HOP.includes(name)) for (const value of values ?? []) headers.append(name, value)
  return headers
}

/** A framework may have read and parsed the body already. */
function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> | string | null {
  const { body } = incoming as FrameworkRequest
  if (!incoming.readableEnded && !incoming.readableDidRead)
    return Readable.toWeb(incoming) as ReadableStream<Uint8Array>
  if (body === undefined || body === null) return null
  if (body instanceof Uint8Array) return Buffer.from(body).toString('utf8')
  return typeof body === 'string' ? body : JSON.stringify(body)
}

async function send(response: Response, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  // Something else has answered already, such as the time limit of a framework.
  if (outgoing.headersSent) return void response.body?.cancel().catch(() => {})
  outgoing.statusCode = response.status
  for (const [name, value] of response.headers) outgoing.setHeader(name, value)
  const reader = (response.body as NodeStream<Uint8Array> | null)?.getReader()
  if (!reader) return void outgoing.end()
  const cancel = (): void => void reader.cancel().catch(() => {})
  if (gone.aborted) return cancel()
  gone.addEventListener('abort', cancel, { once: true })
  // Also while it waits below for a client that does not read.
  reader.closed.catch(() => outgoing.destroy())
  outgoing.flushHeaders()
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
    if (outgoing.destroyed || outgoing.writableEnded) return
    if (done || value === undefined) return void outgoing.end()
    if (!outgoing.write(value)) await drained(outgoing)
  }
}

function drained(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed || outgoing.closed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done)
      outgoing.off('close', done)
      resolve()
    }
    outgoing.once('drain', done)
    outgoing.once('close', done)
  })
}
