import type { ModuleRef } from '@nestjs/core'
import type { Duration } from '../base/duration.js'
import { HoldfastError } from '../base/errors.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import type { Holdfast } from '../primitives/holdfast.js'
import { getHoldfastToken } from './tokens.js'

/** The options of `pingCheck`. */
export interface PingCheckOptions {
  /** How long to wait for the store's answer. Default `'1s'`. */
  timeout?: Duration | undefined
  /** The name of the client, as in `forRoot({ name })`. Default: the client without a name. */
  client?: string | undefined
}

/** The health of a client, in the shape that Terminus expects. */
export interface HoldfastHealth {
  /** Whether the store answered in time. */
  status: 'up' | 'down'
  /** How long the answer took, in milliseconds. */
  ms?: number
  /** The error code, if it is down. */
  code?: string
  /** What went wrong, if it is down. */
  message?: string
}

const PING_CHECK_OPTIONS: OptionNames<PingCheckOptions> = { timeout: true, client: true }

/**
 * A health indicator for `@nestjs/terminus`. `HoldfastModule` provides it. Use it for readiness,
 * not for liveness: a store that is down would restart all your processes.
 *
 * @example
 * ```ts
 * import { Controller, Get } from '@nestjs/common'
 * import { HealthCheck, HealthCheckService } from '@nestjs/terminus'
 * import { HoldfastHealthIndicator } from 'holdfast/nestjs'
 *
 * @Controller('ready')
 * export class ReadyController {
 *   constructor(
 *     readonly health: HealthCheckService,
 *     readonly locks: HoldfastHealthIndicator,
 *   ) {}
 *
 *   @Get()
 *   @HealthCheck()
 *   check() {
 *     return this.health.check([() => this.locks.pingCheck('locks')])
 *   }
 * }
 * ```
 */
export class HoldfastHealthIndicator {
  readonly #moduleRef: ModuleRef

  /** @internal */
  constructor(moduleRef: ModuleRef) {
    this.#moduleRef = moduleRef
  }

  /** Pings the store of a client. Resolves with its status under `key`, also if it is down. */
  async pingCheck<Key extends string>(
    key: Key,
    options: PingCheckOptions = {},
  ): Promise<Record<Key, HoldfastHealth>> {
    const { timeout, client } = checkOptions(options, PING_CHECK_OPTIONS, "{ timeout: '1s' }")
    // Not only in the module of the indicator: each client is in a module of its own.
    const locks = this.#moduleRef.get<Holdfast>(getHoldfastToken(client), { strict: false })
    const health = await locks
      .ping({ timeout })
      .then((ms): HoldfastHealth => ({ status: 'up', ms: Math.round(ms) }), downBecause)
    return { [key]: health } as Record<Key, HoldfastHealth>
  }
}

/** A mistake in the options is no outage. */
function downBecause(error: unknown): HoldfastHealth {
  if (!(error instanceof HoldfastError) || error.code === 'INVALID_ARGUMENT') throw error
  return { status: 'down', code: error.code, message: error.message }
}
