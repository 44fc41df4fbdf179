import { invalid } from '../base/errors.js'
import { Problem } from './problems.js'

/** A body that is larger is refused. */
const MOST_BODY_BYTES = 16 * 1024

/** Where a request comes from, as far as the bridge knows. */
export interface Peer {
  /** The address of the other end of the connection; null: not known. */
  readonly address: string | null
  /** The path under which the framework has mounted the handler; null: not known. */
  readonly mount: string | null
}

/** One request, with what the router and the guard have found out. */
export interface HttpCall {
  readonly request: Request
  readonly url: URL
  readonly params: Readonly<Record<string, string>>
  readonly peer: Peer
  /** The mount path without a slash at its end. */
  readonly base: string
  /** Who asks; null: not known, on loopback. */
  readonly user: string | null
}

export function json(
  data: unknown,
  init: { status?: number; headers?: Record<string, string> } = {},
): Response {
  const { status = 200, headers = {} } = init
  return new Response(JSON.stringify(data), {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
  })
}

/** The body as a JSON object. It must say that it is one: a form of another site cannot. */
export async function readJson(request: Request): Promise<Record<string, unknown>> {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json')
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      'Send the body with the header content-type: application/json',
    )
  const text = await readText(request)
  let value: unknown
  try {
    value = text === '' ? {} : JSON.parse(text)
  } catch {
    throw invalid('The body is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('The body must be a JSON object')
  return value as Record<string, unknown>
}

async function readText(request: Request): Promise<string> {
  const tooLarge = (): Problem =>
    new Problem('BODY_TOO_LARGE', `The body has more than ${MOST_BODY_BYTES} bytes`, { connection: 'close' })
  if (Number(request.headers.get('content-length') ?? 0) > MOST_BODY_BYTES) throw tooLarge()
  if (!request.body) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = request.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks).toString('utf8')
    bytes += value.byteLength
    if (bytes > MOST_BODY_BYTES) throw tooLarge()
    chunks.push(value)
  }
}

/** Refuses fields that are not known: a misspelt one would be ignored. */
export function checkFields(body: Record<string, unknown>, known: readonly string[]): void {
  for (const name of Object.keys(body))
    if (!known.includes(name)) throw invalid(`There is no field '${name}'; known are ${known.join(', ')}`)
}
