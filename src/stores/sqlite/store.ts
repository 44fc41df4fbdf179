import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { SqliteConnection } from './connection.js'
import { FileUser, type FileUserOptions } from './file-user.js'

export class SqliteStore implements Store {
  readonly name = 'sqlite'
  readonly capabilities: Capabilities = {
    perHoldLease: true,
    // So many take some ten milliseconds, during which neither this process nor another one can use the file.
    maxBeats: 250,
    // Where no socket can be made or reached, nothing is told.
    askNextEveryMs: 100,
  }
  readonly #user: FileUser

  constructor(options: FileUserOptions) {
    this.#user = new FileUser(options)
  }

  connect(client: ClientContext): Connection {
    return new SqliteConnection(this.#user, client)
  }
}
