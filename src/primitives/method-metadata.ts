interface MetadataReflect {
  getOwnMetadataKeys(target: object): unknown[]
  getOwnMetadata(key: unknown, target: object): unknown
  defineMetadata(key: unknown, value: unknown, target: object): void
}

/**
 * Copies the metadata of a method to the one that wraps it. Frameworks such as NestJS store the
 * metadata of their decorators on the function itself.
 */
export function copyMetadata<Wrapper extends object>(from: object, to: Wrapper): Wrapper {
  const reflect = Reflect as typeof Reflect & Partial<MetadataReflect>
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? [])
    reflect.defineMetadata?.(key, reflect.getOwnMetadata?.(key, from), to)
  return to
}
