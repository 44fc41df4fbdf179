import type { Env } from '../../base/env.js'
import type { RedisDriver } from '../../stores/redis/driver.js'
import type { Script } from '../../stores/redis/lua/script.js'

/** The calls of the locks of one client. */
export class PeerCalls {
  readonly driver: RedisDriver
  readonly env: Env

  constructor(driver: RedisDriver, env: Env) {
    this.driver = driver
    this.env = env
  }

  async run(script: Script, keys: readonly string[], ...args: (string | number)[]): Promise<string> {
    return String(await this.driver.run(script, keys, args.map(String)))
  }

  /** One command, without a script. Not for a Cluster. */
  async command(...words: [name: string, ...args: string[]]): Promise<unknown> {
    const [master] = await this.driver.masters()
    return master?.command(...words)
  }

  /**
   * Whether a release found the lock. A client may send it again after a lost connection: then the
   * second sending finds nothing, although the first one has released.
   */
  async wasHeld(release: () => Promise<boolean>): Promise<boolean> {
    const { losses } = this.driver
    return (await release()) || this.driver.losses !== losses
  }
}
