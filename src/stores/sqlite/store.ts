import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { SqliteBackend, type SqliteBackendOptions } from './backend.js'
import { SqliteConnection } from './connection.js'

export class SqliteStore implements Store {
  readonly name = 'sqlite'
  readonly capabilities: Capabilities
  readonly #backend: SqliteBackend

  constructor(options: SqliteBackendOptions) {
    const backend = new SqliteBackend(options)
    this.#backend = backend
    this.capabilities = {
      perHoldLease: true,
      // So many take about ten milliseconds, during which no process can use the file for anything
      // else.
      maxBeats: 250,
      // Pushes are lost where a process cannot make or reach a socket.
      askNextEveryMs: 100,
      takesFences: true,
      get tellsWanted() {
        return backend.receivesPushes
      },
    }
  }

  connect(client: ClientContext): Connection {
    return new SqliteConnection(this.#backend, client)
  }
}
