import { Inject } from '@nestjs/common'
import { invalid } from '../base/errors.js'
import { Holdfast } from '../primitives/holdfast.js'

/** The name of the client that has no name: its token is the class itself. */
export const DEFAULT_CLIENT = 'default'

/**
 * The token under which Nest provides a client: the class `Holdfast`, or a text for a named client.
 * For `useFactory`, `overrideProvider` and `app.get`.
 *
 * @example
 * ```ts
 * import type { INestApplicationContext } from '@nestjs/common'
 * import type { Holdfast } from 'holdfast'
 * import { getHoldfastToken } from 'holdfast/nestjs'
 *
 * export function billingLocks(app: INestApplicationContext) {
 *   return app.get<Holdfast>(getHoldfastToken('billing'))
 * }
 * ```
 */
export function getHoldfastToken(name: string = DEFAULT_CLIENT): typeof Holdfast | string {
  if (typeof name !== 'string' || name === '') throw invalid('The name of a client must be a text')
  return name === DEFAULT_CLIENT ? Holdfast : `holdfast:${name}`
}

/**
 * Injects a client. Without a name it is the default client, which you can also inject by its type
 * `Holdfast`.
 *
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common'
 * import { Holdfast } from 'holdfast'
 * import { InjectHoldfast } from 'holdfast/nestjs'
 *
 * @Injectable()
 * export class Invoices {
 *   constructor(
 *     readonly locks: Holdfast,
 *     @InjectHoldfast('billing') readonly billing: Holdfast,
 *   ) {}
 * }
 * ```
 */
export function InjectHoldfast(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getHoldfastToken(name))
}
