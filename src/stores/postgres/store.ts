import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { PostgresConnection } from './connection.js'
import type { PostgresUser } from './user.js'

/** While messages are not heard, whoever is next in line asks so often. */
const ASK_NEXT_EVERY_MS = 200

export class PostgresStore implements Store {
  readonly name = 'postgres'
  readonly capabilities: Capabilities
  readonly #user: PostgresUser

  constructor(user: PostgresUser) {
    this.#user = user
    this.capabilities = {
      perHoldLease: true,
      // Their lines are locked until all are done: so many take a few milliseconds.
      maxBeats: 250,
      get askNextEveryMs() {
        return user.ears.isHearing ? null : ASK_NEXT_EVERY_MS
      },
    }
  }

  connect(client: ClientContext): Connection {
    return new PostgresConnection(this.#user, client)
  }
}
