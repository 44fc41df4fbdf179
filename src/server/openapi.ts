import { json } from './call.js'
import { LONGEST_WAIT_MS } from './lock-request.js'
import { operations } from './openapi-operations.js'
import { schemas } from './openapi-schemas.js'
import { version } from './page.js'
import type { Route } from './router.js'

/** The description of all paths, as OpenAPI 3.1. The tests check every answer against it. */
export function openapi(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: version(),
      description: `Locks for any language, and what the dashboard reads. A request waits for at most ${LONGEST_WAIT_MS / 1000} s.`,
    },
    security: [{ bearer: [] }, { cookie: [] }],
    paths: operations,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: 'holdfast_token_HASH',
          description: 'POST /login sets it. Its name ends with the first 8 digits of a hash of the token.',
        },
      },
    },
  }
}

/** `GET openapi.json`: it is the same for every store, and no secret. */
export function openapiRoutes(): Route[] {
  return [{ method: 'GET', path: 'openapi.json', access: 'anybody', answer: () => json(openapi()) }]
}
