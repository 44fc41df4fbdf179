import { HoldfastError } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { Hold } from '../primitives/hold.js'
import { type OnceOptions, readOnceOptions } from '../primitives/once.js'
import { wrapMethod } from './method.js'

/** The options of `@OncePerCluster`: those of `once`, and the client. */
export interface OncePerClusterOptions extends OnceOptions {
  /** The name of the client, as in `forRoot({ name })`. Default: the client without a name. */
  client?: string | undefined
}

/**
 * A method decorator for `experimentalDecorators`, which NestJS uses. The method takes the hold or
 * nothing. Its result is undefined where it did not run.
 */
export type OncePerClusterDecorator = <Args extends [] | [hold?: Hold], Result>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<(...args: Args) => Promise<Result | undefined>>,
) => void

/**
 * Runs a scheduled method in one of many processes; in the others, and in one whose application has
 * ended, it resolves with undefined. Put it beside `@Cron`, `@Interval` or `@Timeout` of
 * `@nestjs/schedule`. The method gets the hold, for its signal and its fence. See
 * `docs/guides/frameworks/nestjs.md`.
 *
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common'
 * import { Cron } from '@nestjs/schedule'
 * import type { Hold } from 'holdfast'
 * import { OncePerCluster } from 'holdfast/nestjs'
 *
 * @Injectable()
 * export class Reports {
 *   @Cron('0 3 * * *')
 *   @OncePerCluster('nightly-report', { atLeast: '10m', atMost: '1h' })
 *   async write(hold: Hold) {
 *     hold.signal.throwIfAborted()
 *   }
 * }
 * ```
 */
export function OncePerCluster(name: string, options: OncePerClusterOptions): OncePerClusterDecorator {
  checkName(name, 'The name of a job')
  const { client, ...onceOptions } = { ...options }
  readOnceOptions(onceOptions, name)
  return wrapMethod('OncePerCluster', client, async (locks, _args, proceed) => {
    let hasBegun = false
    const work = (hold: Hold): Promise<unknown> => {
      hasBegun = true
      return proceed([hold])
    }
    try {
      const outcome = await locks.once(name, onceOptions, work)
      return outcome.ran ? outcome.value : undefined
    } catch (error) {
      // A tick while the application ends: it is left to the other processes.
      if (!hasBegun && error instanceof HoldfastError && error.code === 'CLOSED') return undefined
      throw error
    }
  })
}
