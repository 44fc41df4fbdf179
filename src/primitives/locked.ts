import { invalid } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { copyMetadata } from './method-metadata.js'
import { Mutex } from './mutex.js'
import { type AcquireOptions, CALL_OPTIONS } from './options.js'
import type { LockContext } from './reentry.js'

/** Returns the name to lock for the arguments of one call. */
// biome-ignore lint/suspicious/noExplicitAny: parameters that are not typed may be anything
export type NameOf<Args extends any[] = any[]> = (...args: Args) => string

/**
 * A method decorator, for the TC39 standard and for TypeScript's `experimentalDecorators`. The
 * method takes at least the arguments that its name is made from.
 */
// biome-ignore lint/suspicious/noExplicitAny: as above
export interface LockedDecorator<NameArgs extends any[] = any[]> {
  <This, Args extends [...NameArgs, ...unknown[]], Result>(
    method: (this: This, ...args: Args) => Promise<Result>,
    context: ClassMethodDecoratorContext<This>,
  ): (this: This, ...args: Args) => Promise<Result>
  <Args extends [...NameArgs, ...unknown[]], Result>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Args) => Promise<Result>>,
  ): void
}

type Method = (...args: unknown[]) => Promise<unknown>

// biome-ignore lint/suspicious/noExplicitAny: as above
export function locked<Args extends any[]>(
  context: LockContext,
  name: string | NameOf<Args>,
  options: AcquireOptions,
): LockedDecorator<Args> {
  const nameOf = name as string | NameOf
  if (typeof nameOf !== 'function') new Mutex(context, nameOf)
  checkOptions(options, CALL_OPTIONS.acquire, "{ wait: '5s' }")

  function wrap(method: Method): Method {
    return copyMetadata(method, async function (this: unknown, ...args: unknown[]) {
      const mutex = new Mutex(context, typeof nameOf === 'function' ? nameOf(...args) : nameOf)
      return mutex.run(() => method.apply(this, args), options)
    })
  }

  function decorate(target: unknown, place: unknown, descriptor?: PropertyDescriptor): unknown {
    if (isStandard(place)) {
      if (place.kind !== 'method') throw invalid(`@locked is for methods, not for a ${place.kind}`)
      return wrap(target as Method)
    }
    if (typeof descriptor?.value !== 'function') throw invalid('@locked is for methods')
    descriptor.value = wrap(descriptor.value)
    return undefined
  }
  return decorate as LockedDecorator<Args>
}

/** With `experimentalDecorators`, the second argument is the method's name. */
function isStandard(place: unknown): place is DecoratorContext {
  return typeof place === 'object' && place !== null
}
