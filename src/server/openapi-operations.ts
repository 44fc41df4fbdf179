import { listOf, objectOf, ref } from './openapi-schemas.js'

type Json = Readonly<Record<string, unknown>>

const text: Json = { type: 'string' }
const name: Json = { name: 'name', in: 'path', required: true, schema: text }
const token: Json = { name: 'Holdfast-Token', in: 'header', schema: text }
const change: Json = { name: 'x-holdfast-change', in: 'header', required: true, schema: { const: '1' } }

function query(...names: string[]): Json[] {
  return ['space', ...names].map((each) => ({ name: each, in: 'query', schema: text }))
}

const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'The request makes no sense',
  401: 'No token, or a wrong one',
  403: 'Not allowed: read-only, or sent by another site',
  404: 'There is no such line, or no such space',
  409: 'Not free within the wait, or in use with another capacity',
  410: 'The hold is over',
  413: 'The body is too large',
  415: 'The body is not declared as JSON',
  429: 'Too many requests, or too many wrong tokens',
  501: 'The store cannot do it',
  503: 'The store does not answer, or too many wait',
}

function answers(status: number, description: string, schema: Json | null, problems: number[]): Json {
  const content = schema === null ? {} : { content: { 'application/json': { schema } } }
  const refusals = problems.map((each) => [
    each,
    {
      description: PROBLEMS[each],
      content: { 'application/problem+json': { schema: ref('Problem') } },
    },
  ])
  return { [status]: { description, ...content }, ...Object.fromEntries(refusals) }
}

function body(schema: Json): Json {
  return { required: true, content: { 'application/json': { schema } } }
}

/** `GET` of something that the page shows. */
function shown(summary: string, schema: Json, parameters: Json[], problems: number[] = []): Json {
  return { summary, parameters, responses: answers(200, summary, schema, [401, 403, 404, 429, ...problems]) }
}

/** A change that operators make to a line. */
function changed(
  summary: string,
  field: Json,
  required: string[],
  result: Json,
  problems: number[] = [],
): Json {
  return {
    summary,
    parameters: [name, change, ...query()],
    requestBody: body(objectOf(field as Record<string, Json>, required)),
    responses: answers(200, summary, result, [400, 401, 403, 404, 413, 415, 429, 503, ...problems]),
  }
}

const LOCK_PROBLEMS = [400, 401, 403, 404, 409, 410, 413, 415, 429, 501, 503]
const HOLD_PROBLEMS = [400, 401, 403, 404, 410, 413, 415, 429, 501, 503]
const whole: Json = { type: 'integer' }

function health(summary: string, codes: number[]): Json {
  const content = { 'application/json': { schema: ref('Health') } }
  const responses = Object.fromEntries(codes.map((code) => [code, { description: summary, content }]))
  return { summary, security: [], responses }
}

/** The paths below the mount path. */
export const operations: Readonly<Record<string, Json>> = {
  '/v1/locks/{name}': {
    post: {
      summary: 'Takes a lock, a read lock, or permits of a semaphore; waits in line for it',
      parameters: [name, ...query()],
      requestBody: body(ref('LockRequest')),
      responses: answers(201, 'Granted', ref('GrantedHold'), LOCK_PROBLEMS),
    },
    get: shown(
      'The line: who holds, who waits',
      ref('ResourceDetail'),
      [name, ...query('offset', 'limit')],
      [400, 503],
    ),
  },
  '/v1/locks/{name}/try': {
    post: {
      summary: 'The same without waiting',
      parameters: [name, ...query()],
      requestBody: body(ref('TryRequest')),
      responses: answers(201, 'Granted', ref('GrantedHold'), LOCK_PROBLEMS),
    },
  },
  '/v1/holds/{name}': {
    put: {
      summary: 'Renews a hold',
      parameters: [name, token, ...query()],
      requestBody: body(ref('RenewRequest')),
      responses: answers(200, 'Renewed', ref('RenewedHold'), HOLD_PROBLEMS),
    },
    delete: {
      summary: 'Releases a hold',
      parameters: [name, token, ...query()],
      responses: answers(204, 'Released', null, HOLD_PROBLEMS),
    },
  },
  '/api/info': { get: shown('The server and its store', ref('Info'), query()) },
  '/api/resources': {
    get: shown(
      'The resources of a space',
      ref('ResourceList'),
      query('prefix', 'search', 'state', 'host', 'label', 'sort', 'offset', 'limit'),
      [400, 503],
    ),
  },
  '/api/resources/{name}': {
    get: shown('One resource', ref('ResourceDetail'), [name, ...query('offset', 'limit')], [400, 503]),
  },
  '/api/overview': {
    get: shown('Elections, latches, barriers and jobs', ref('Overview'), query(), [503]),
  },
  '/api/doctor': {
    get: shown('The health of the store', objectOf({ findings: listOf(ref('Finding')) }), query(), [503]),
  },
  '/api/audit': { get: shown('The last changes', objectOf({ entries: listOf(ref('AuditEntry')) }), query()) },
  '/api/events': {
    get: {
      summary: 'Changes as server-sent events: resources, resource, trouble, fine',
      parameters: query('resource'),
      responses: {
        ...answers(200, '', null, [401, 403, 404, 429, 503]),
        200: { description: 'A stream', content: { 'text/event-stream': {} } },
      },
    },
  },
  '/api/resources/{name}/break': {
    post: changed(
      'Revokes a hold, or all',
      { fence: whole },
      [],
      objectOf({ revoked: listOf(ref('Party')) }),
    ),
  },
  '/api/resources/{name}/cancel': {
    post: changed(
      'Takes a waiter out of the line',
      { id: text },
      ['id'],
      objectOf({ cancelled: listOf(ref('Party')) }),
    ),
  },
  '/api/resources/{name}/resize': {
    post: changed(
      'Changes the capacity of a semaphore',
      { capacity: whole },
      ['capacity'],
      objectOf({ capacity: whole }),
      [409],
    ),
  },
  '/healthz': { get: health('The process is up', [200]) },
  '/readyz': { get: health('The store answers', [200, 503]) },
  '/metrics': {
    get: {
      summary: 'The figures of the lines, for Prometheus',
      responses: {
        ...answers(200, '', null, [401, 403, 429]),
        200: { description: 'Text exposition', content: { 'text/plain': {} } },
      },
    },
  },
}
