/**
 * Puts the check in front of a Lua script. The result takes the fence key and the fence before the
 * keys and arguments of the body, which finds its own in KEYS and ARGV as if it ran alone. The body
 * is plain Lua, without a `#!` line.
 *
 * KEYS[1]  the fence key: the newest fence as text, without expiry
 * ARGV[1]  the fence of the writer
 * Result   that of the body; or an error reply `STALE_FENCE <newest>`, and nothing is changed
 *
 * Fences are compared as numbers (doubles, exact up to 2^53) but stored as the given text: Lua
 * would print 1.79e+15.
 *
 * @example
 * ```ts
 * import { guardScript } from 'holdfast/fence'
 *
 * export const guardedIncrement = guardScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
 * ```
 */
export function guardScript(body: string): string {
  return `local function body(KEYS, ARGV)
${body}
end
local newest = redis.call('GET', KEYS[1])
if newest and tonumber(newest) > tonumber(ARGV[1]) then
  return redis.error_reply('STALE_FENCE ' .. newest)
end
redis.call('SET', KEYS[1], ARGV[1])
local keys, arguments = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 2, #ARGV do arguments[i - 1] = ARGV[i] end
return body(keys, arguments)`
}

/** Checks and remembers the fence, and does nothing else. */
export const CHECK_SCRIPT = guardScript('return 1')

/** KEYS[1] the key, ARGV[1] its new value. Removes the key's expiry, as SET does. */
export const SET_SCRIPT = guardScript("redis.call('SET', KEYS[1], ARGV[1]) return 1")

/** The newest fence, if the error is a refusal by the script; else undefined. */
export function newestIn(error: unknown): number | undefined {
  const found = error instanceof Error ? /\bSTALE_FENCE (\d+)/.exec(error.message)?.[1] : undefined
  return found === undefined ? undefined : Number(found)
}
