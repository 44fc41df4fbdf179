import { invalid } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import type { LockContext } from './entrance.js'
import { Mutex } from './mutex.js'
import { type AcquireOptions, EACH_TIME } from './options.js'

/** Gives the name to lock for the arguments of one call. */
// biome-ignore lint/suspicious/noExplicitAny: the decorated method decides what its arguments are
export type NameOf = (...args: any[]) => string

/** A method decorator of the TC39 standard (TypeScript 5 and later, without `experimentalDecorators`). */
export type LockedDecorator = <This, Args extends unknown[], Result>(
  method: (this: This, ...args: Args) => Promise<Result>,
  context: ClassMethodDecoratorContext<This>,
) => (this: This, ...args: Args) => Promise<Result>

export function locked(
  context: LockContext,
  name: string | NameOf,
  options: AcquireOptions,
): LockedDecorator {
  if (typeof name !== 'function') new Mutex(context, name)
  checkOptions(options, EACH_TIME.acquire, "{ wait: '5s' }")
  return (method, { kind }) => {
    // With `experimentalDecorators`, the second argument is the method's name.
    if (kind === undefined)
      throw invalid('@locked is a standard decorator; compile without experimentalDecorators')
    if (kind !== 'method') throw invalid(`@locked is for methods, not for a ${kind}`)
    return async function (...args) {
      const mutex = new Mutex(context, typeof name === 'function' ? name(...args) : name)
      return mutex.run(() => method.apply(this, args), options)
    }
  }
}
