/**
 * The key beside `key` that remembers its newest fence. In a cluster both must be in one slot: a
 * key with a hash tag keeps it, and any other key becomes the tag. (A key with a closing brace but
 * no tag cannot be matched; a cluster refuses it with CROSSSLOT.)
 *
 * @example
 * ```ts
 * import { redisFenceKey } from 'holdfast/fence'
 *
 * console.log(redisFenceKey('order:42')) // holdfast:fence:{order:42}
 * ```
 */
export function redisFenceKey(key: string): string {
  // Two prefixes, so that 'a' and '{a}' do not share a fence.
  return /^[^{]*\{[^}]+\}/.test(key) ? `holdfast:fence-of:${key}` : `holdfast:fence:{${key}}`
}

/** Where `check` remembers the fence of a resource: not among the fences of keys. */
export function resourceFenceKey(resource: string): string {
  return `holdfast:fence-of-resource:${resource}`
}
