import type { OnApplicationShutdown } from '@nestjs/common'
import type { Holdfast } from '../primitives/holdfast.js'

/** Closes a client when Nest ends the application: by a signal, or by `app.close()`. */
export class ClientShutdown implements OnApplicationShutdown {
  readonly #locks: Holdfast

  constructor(locks: Holdfast) {
    this.#locks = locks
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#locks.close()
  }
}
