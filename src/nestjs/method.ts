import { Inject } from '@nestjs/common'
import { invalid } from '../base/errors.js'
import type { Holdfast } from '../primitives/holdfast.js'
import { copyMetadata } from '../primitives/method-metadata.js'
import { DEFAULT_CLIENT, getHoldfastToken } from './tokens.js'

/** A method of any class, with its arguments as they come. */
type AnyMethod = (this: unknown, ...args: unknown[]) => Promise<unknown>

/** Runs a call of a method with the client of its object. `proceed` calls the method itself. */
type Around = (
  locks: Holdfast,
  args: unknown[],
  proceed: (args: unknown[]) => Promise<unknown>,
) => Promise<unknown>

/**
 * Wraps a method of a class that Nest makes. Nest injects the client as a property of each object,
 * so that two applications in one process do not share one.
 */
export function wrapMethod(
  decorator: string,
  client: string | undefined,
  around: Around,
): (target: object, key: string | symbol, descriptor: PropertyDescriptor) => void {
  const token = getHoldfastToken(client)
  const property = Symbol.for(`holdfast.client.${client ?? DEFAULT_CLIENT}`)
  return (target, key, descriptor) => {
    if (typeof target !== 'object' || typeof descriptor?.value !== 'function')
      throw invalid(`@${decorator} is for methods of objects, with the option experimentalDecorators`)
    const method: AnyMethod = descriptor.value
    Inject(token)(target, property)
    const wrapper: AnyMethod = async function (...args) {
      const locks = (this as Record<symbol, Holdfast | undefined> | undefined)?.[property]
      if (locks === undefined)
        throw invalid(
          `@${decorator} on ${String(key)} found no client; let Nest make the object, as a class in providers or controllers`,
        )
      return around(locks, args, async (passed) => method.apply(this, passed))
    }
    descriptor.value = copyMetadata(method, wrapper)
  }
}
