/**
 * Gives a class the shape that an interface has in a browser: its members can be enumerated, it names itself, and it counts no
 * arguments of its constructor.
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
