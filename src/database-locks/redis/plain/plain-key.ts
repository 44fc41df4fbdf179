import type { Duration } from '../../../base/duration.js'
import { toMs } from '../../../base/duration.js'
import { type Env, systemEnv } from '../../../base/env.js'
import { invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import { driverOpener } from '../../../stores/redis/clients.js'
import { PeerCalls } from '../calls.js'
import type { PeerClaim, PeerGrant, TakeAnswer } from '../claim.js'
import { PeerHold } from '../hold.js'
import { PeerLock, type PeerLockKind } from '../lock.js'
import { type PeerRequest, readLease } from '../options.js'
import { isMissing, type KeyCommands, keyCommandsOf, ScriptedKeyCommands } from './key-commands.js'

/** The options of `plainKeyLock`. */
export interface PlainKeyLockOptions {
  /** What the key of a lock has before its name. Default: nothing, so the name is the key. */
  prefix?: string | undefined
  /** How long a lock lives without a renewal. Default: 30 seconds. */
  lease?: Duration | undefined
  /**
   * How often a waiter asks again: after half of this to all of it, at random. Default: 100
   * milliseconds.
   */
  poll?: Duration | undefined
  /** Time and randomness of your own, for simulations. */
  env?: Env | undefined
}

const PLAIN_KEY_LOCK_OPTIONS: OptionNames<PlainKeyLockOptions> = {
  prefix: true,
  lease: true,
  poll: true,
  env: true,
}

/** Locks that are one key each, shared with other programs. Made by `plainKeyLock`. */
export class PlainKeyLocks {
  readonly #kind: PeerLockKind<PeerHold>

  /** @internal */
  constructor(client: object, options: PlainKeyLockOptions) {
    const {
      prefix,
      lease = '30s',
      poll = 100,
      env = systemEnv,
    } = checkOptions(options, PLAIN_KEY_LOCK_OPTIONS, "{ prefix: 'lock:' }")
    const keyPrefix = checkKeyPrefix(prefix)
    const pollMs = toMs(poll, { name: 'poll', minMs: 1 })
    const commands = new KnownKeyCommands(new PeerCalls(driverOpener(client)(), env))
    this.#kind = {
      env,
      leaseMs: readLease(lease),
      createClaim: (name) => new PlainKeyClaim(commands, keyPrefix + name, pollMs, env),
      createHold: (name: string, grant: PeerGrant) => new PeerHold(name, grant, env),
    }
  }

  /**
   * The lock of a name. It is not re-entrant, because the format keeps no count.
   *
   * @example
   * ```ts
   * import { plainKeyLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const locks = plainKeyLock(new Redis())
   * await locks.mutex('report').run(async () => console.log('no Python, Go or Java program is here'))
   * ```
   */
  mutex(name: string): PeerLock {
    return new PeerLock(checkName(name, 'The name of a lock'), this.#kind)
  }
}

function checkKeyPrefix(prefix: unknown = ''): string {
  if (typeof prefix === 'string') return prefix
  throw invalid(`prefix is ${String(prefix)}, but must be text`)
}

/** The commands for keys, once it is known which of them the server has. */
class KnownKeyCommands {
  readonly calls: PeerCalls
  #known: Promise<KeyCommands> | undefined

  constructor(calls: PeerCalls) {
    this.calls = calls
  }

  async use(key: string, token: string, work: (commands: KeyCommands) => Promise<boolean>): Promise<boolean> {
    const commands = await this.#get(key, token)
    try {
      return await work(commands)
    } catch (error) {
      if (commands instanceof ScriptedKeyCommands || !isMissing(error)) throw error
      // After a fail-over, an older server may answer.
      const scripted = new ScriptedKeyCommands(this.calls)
      this.#known = Promise.resolve(scripted)
      return work(scripted)
    }
  }

  /** A failure to ask is forgotten: the next call asks again. */
  #get(key: string, token: string): Promise<KeyCommands> {
    if (this.#known) return this.#known
    const asking = keyCommandsOf(this.calls, key, token)
    this.#known = asking
    asking.catch(() => {
      this.#known = undefined
    })
    return asking
  }
}

class PlainKeyClaim implements PeerClaim {
  readonly hasPlace = false
  readonly #commands: KnownKeyCommands
  readonly #key: string
  readonly #token: string
  readonly #pollMs: number
  readonly #env: Env

  constructor(commands: KnownKeyCommands, key: string, pollMs: number, env: Env) {
    this.#commands = commands
    this.#key = key
    this.#token = env.id()
    this.#pollMs = pollMs
    this.#env = env
  }

  async take({ leaseMs }: PeerRequest): Promise<TakeAnswer> {
    if (await this.#use((commands) => commands.take(this.#key, this.#token, leaseMs)))
      return { isGranted: true, fence: null }
    return { isGranted: false, retryMs: this.#pollMs * (0.5 + this.#env.random() / 2) }
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.#use((commands) => commands.renew(this.#key, this.#token, leaseMs))
  }

  release(): Promise<boolean> {
    const remove = (): Promise<boolean> => this.#use((commands) => commands.delete(this.#key, this.#token))
    return this.#commands.calls.wasHeld(remove)
  }

  leave(): Promise<boolean> {
    return this.release()
  }

  #use(work: (commands: KeyCommands) => Promise<boolean>): Promise<boolean> {
    return this.#commands.use(this.#key, this.#token, work)
  }
}
