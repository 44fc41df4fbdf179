import { checkName } from '../base/names.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import type { NameOf } from '../primitives/locked.js'
import { type AcquireOptions, CALL_OPTIONS } from '../primitives/options.js'
import { wrapMethod } from './method.js'

/** The options of `@Locked`: those of a mutex, and the client. */
export interface LockedOptions extends AcquireOptions {
  /** The name of the client, as in `forRoot({ name })`. Default: the client without a name. */
  client?: string | undefined
}

/**
 * A method decorator for `experimentalDecorators`, which NestJS uses. The method takes at least the
 * arguments that the name is made from.
 */
// biome-ignore lint/suspicious/noExplicitAny: parameters that are not typed may be anything
export type LockedMethodDecorator<NameArgs extends any[] = any[]> = <
  Args extends [...NameArgs, ...unknown[]],
  Result,
>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<(...args: Args) => Promise<Result>>,
) => void

const LOCKED_OPTIONS: OptionNames<LockedOptions> = { ...CALL_OPTIONS.acquire, client: true }

/**
 * Runs a method of a provider or controller inside the mutex of that name. The name may depend on
 * the arguments. See `docs/guides/frameworks/nestjs.md`.
 *
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common'
 * import { Locked } from 'holdfast/nestjs'
 *
 * @Injectable()
 * export class Orders {
 *   @Locked((id: string) => `order:${id}`, { wait: '5s' })
 *   async pay(id: string) {
 *     console.log('no other process pays', id)
 *   }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noExplicitAny: as above
export function Locked<Args extends any[]>(
  name: string | NameOf<Args>,
  options: LockedOptions = {},
): LockedMethodDecorator<Args> {
  const nameOf = name as string | NameOf
  if (typeof nameOf !== 'function') checkName(nameOf, 'The name of a lock')
  const { client, ...acquire } = checkOptions(options, LOCKED_OPTIONS, "{ wait: '5s' }")
  return wrapMethod('Locked', client, (locks, args, proceed) => {
    const mutex = locks.mutex(typeof nameOf === 'function' ? nameOf(...args) : nameOf)
    return mutex.run(() => proceed(args), acquire)
  })
}
