interface MetadataReflect {
  getOwnMetadataKeys(target: object): unknown[]
  getOwnMetadata(key: unknown, target: object): unknown
  defineMetadata(key: unknown, value: unknown, target: object): void
}

/**
 * Copies the name and the metadata of a method to the one that wraps it. Frameworks such as NestJS
 * store the metadata of their decorators on the function itself, and their rate limiters, logs and
 * traces identify a method by its name.
 */
export function copyMetadata<Wrapper extends object>(from: { readonly name: string }, to: Wrapper): Wrapper {
  Object.defineProperty(to, 'name', { value: from.name, configurable: true })
  const reflect = Reflect as typeof Reflect & Partial<MetadataReflect>
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? [])
    reflect.defineMetadata?.(key, reflect.getOwnMetadata?.(key, from), to)
  return to
}
