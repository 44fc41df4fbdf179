import { expect } from 'vitest'
import { openapi } from '../../src/server/openapi.js'

type Json = Record<string, unknown>

const document = openapi() as {
  paths: Record<string, Record<string, { responses: Record<string, { content?: Record<string, Json> }> }>>
  components: { schemas: Record<string, Json> }
}

/** The operations and statuses that answers were checked against: `GET /healthz 200`. */
export const checked = new Set<string>()

/** All operations and statuses of the description. */
export function described(): string[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
    ),
  )
}

/** Checks an answer against the description of its path, and gives its body. */
export async function matching<T = Json>(method: string, path: string, response: Response): Promise<T> {
  const operation = document.paths[path]?.[method.toLowerCase()]
  const answer = operation?.responses[String(response.status)]
  expect(answer, `${method} ${path} does not describe ${response.status}`).toBeDefined()
  checked.add(`${method} ${path} ${response.status}`)
  const type = response.headers.get('content-type')?.split(';')[0] ?? null
  const types = Object.keys(answer?.content ?? {})
  expect(type === null ? [] : [type], `${method} ${path} ${response.status}`).toEqual(types)
  if (type === null || !type.endsWith('json')) return undefined as T
  const body: unknown = await response.json()
  const schema = answer?.content?.[type]?.['schema'] as Json
  expect(faultsOf(body, schema, 'body'), `${method} ${path} ${response.status}`).toEqual([])
  return body as T
}

/** What does not match a JSON Schema, as far as the description uses it. */
export function faultsOf(value: unknown, schema: Json, at: string): string[] {
  if (typeof schema['$ref'] === 'string') {
    const name = schema['$ref'].replace('#/components/schemas/', '')
    const found = document.components.schemas[name]
    return found ? faultsOf(value, found, at) : [`${at}: no schema ${name}`]
  }
  if (Array.isArray(schema['oneOf'])) {
    const fits = schema['oneOf'].filter((each: Json) => faultsOf(value, each, at).length === 0)
    return fits.length === 1 ? [] : [`${at}: fits ${fits.length} of oneOf`]
  }
  if (Array.isArray(schema['enum']))
    return schema['enum'].includes(value) ? [] : [`${at}: ${value} is not listed`]
  const types = [schema['type']].flat()
  if (!types.includes(typeOf(value)) && !(typeOf(value) === 'integer' && types.includes('number')))
    return [`${at}: is ${typeOf(value)}, not ${types}`]
  if (typeof value === 'string' && schema['format'] === 'date-time')
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) ? [] : [`${at}: no time`]
  if (Array.isArray(value))
    return value.flatMap((each, index) => faultsOf(each, schema['items'] as Json, `${at}[${index}]`))
  return typeof value === 'object' && value !== null ? objectFaults(value as Json, schema, at) : []
}

function objectFaults(value: Json, schema: Json, at: string): string[] {
  const properties = (schema['properties'] ?? {}) as Record<string, Json>
  const required = (schema['required'] ?? []) as string[]
  return [
    ...required.filter((name) => !(name in value)).map((name) => `${at}.${name} is missing`),
    ...Object.entries(value).flatMap(([name, each]) =>
      properties[name]
        ? faultsOf(each, properties[name], `${at}.${name}`)
        : [`${at}.${name} is not described`],
    ),
  ]
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}
