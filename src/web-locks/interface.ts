/**
 * Gives a class the shape of an interface in a browser: enumerable members, a string tag, and a
 * constructor of length 0.
 */
export function shapeAsInterface(
  type: { prototype: object },
  name: string,
  members: readonly string[],
): void {
  for (const member of members) Object.defineProperty(type.prototype, member, { enumerable: true })
  Object.defineProperty(type.prototype, Symbol.toStringTag, { value: name, configurable: true })
  Object.defineProperty(type, 'length', { value: 0 })
}
