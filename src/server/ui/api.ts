/** A request that the server refused, in its own words. */
export class RefusedRequest extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Below the folder in which the page itself lies, wherever that is mounted. */
export function addressOf(path: string, parameters: Record<string, string | number> = {}): string {
  const url = new URL(path, location.href)
  for (const [name, value] of Object.entries(parameters))
    if (value !== '') url.searchParams.set(name, String(value))
  return url.href
}

export async function get<T>(path: string, parameters?: Record<string, string | number>): Promise<T> {
  return answerTo<T>(fetch(addressOf(path, parameters), { headers: { accept: 'application/json' } }))
}

export async function post<T>(path: string, body: unknown, parameters?: Record<string, string>): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-holdfast-change': '1' }
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  return answerTo<T>(fetch(addressOf(path, parameters), request))
}

async function answerTo<T>(asked: Promise<Response>): Promise<T> {
  const response = await asked.catch(() => {
    throw new RefusedRequest(0, 'The dashboard server does not answer.')
  })
  const text = await response.text()
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T
  throw new RefusedRequest(response.status, problemIn(text) ?? `The server answered ${response.status}.`)
}

/** The words of a problem document (RFC 9457). */
function problemIn(text: string): string | null {
  try {
    const { detail, title } = Object(JSON.parse(text))
    return typeof detail === 'string' ? detail : typeof title === 'string' ? title : null
  } catch {
    return null
  }
}
