import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import type { PostgresBackend } from './backend.js'
import { PostgresConnection } from './connection.js'

/** Poll interval of the next in line while messages are not heard. */
const ASK_NEXT_EVERY_MS = 200

export class PostgresStore implements Store {
  readonly name = 'postgres'
  readonly capabilities: Capabilities
  readonly #backend: PostgresBackend

  constructor(backend: PostgresBackend) {
    this.#backend = backend
    this.capabilities = {
      perHoldLease: true,
      // The lines stay locked until all beats are done: with this many, for a few milliseconds.
      maxBeats: 250,
      get askNextEveryMs() {
        return backend.isHearing ? null : ASK_NEXT_EVERY_MS
      },
      takesFences: true,
      get tellsWanted() {
        return backend.isHearing
      },
    }
  }

  connect(client: ClientContext): Connection {
    return new PostgresConnection(this.#backend, client)
  }
}
