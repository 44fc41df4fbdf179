import { scriptOf } from '../../../../stores/redis/lua/script.js'
import { WAKE_ALL, WAKE_ONE } from './shared.js'

// The semaphore and the latch are a number each: a call that is made twice would count twice. So a
// key of ours beside it says for a while what became of the call.

/** How long that is: longer than a client sends a command again. */
const REMEMBER_MS = 60_000
/** For permits that are taken: they may be given back late, or twice, as after a long outage. */
export const TAKEN_MS = 24 * 3_600_000
const rememberLua = (what: string, ms = REMEMBER_MS): string =>
  `redis.call('set', KEYS[2], '${what}', 'px', ${ms})`

/** Input: KEYS: semaphore, call; ARGV: permits. Output: 1 if they are taken. */
export const takePermits = scriptOf(`
local call = redis.call('get', KEYS[2])
if call then return call == 'taken' and 1 or 0 end
local available = tonumber(redis.call('get', KEYS[1]) or 0)
if available < tonumber(ARGV[1]) then return 0 end
redis.call('decrby', KEYS[1], ARGV[1])
${rememberLua('taken', TAKEN_MS)}
return 1
`)

/**
 * Input: KEYS: semaphore, call; ARGV: permits, channel, 1 if they were taken so long ago that it is
 * forgotten. Output: 1 if they were given back.
 */
export const returnPermits = scriptOf(`
local call = redis.call('get', KEYS[2])
local isTaken = call == 'taken' or (not call and ARGV[3] == '1')
${rememberLua('over')}
if not isTaken then return 0 end
redis.call('publish', ARGV[2], redis.call('incrby', KEYS[1], ARGV[1]))
return 1
`)

/** Input: KEYS: semaphore; ARGV: permits, channel. Output: 1 if set, 0 if there are some. */
export const setPermits = scriptOf(`
if not redis.call('set', KEYS[1], ARGV[1], 'NX') then return 0 end
redis.call('publish', ARGV[2], ARGV[1])
return 1
`)

/** Input: KEYS: latch; ARGV: count, channel. Output: 1 if it was set, 0 if it is counting. */
export const setCount = scriptOf(`
if not redis.call('set', KEYS[1], ARGV[1], 'NX') then return 0 end
redis.call('publish', ARGV[2], '${WAKE_ALL}')
return 1
`)

/** Input: KEYS: latch, call; ARGV: channel. Output: the count that is left. */
export const countDown = scriptOf(`
local before = tonumber(redis.call('get', KEYS[1]) or 0)
if before <= 0 or redis.call('exists', KEYS[2]) == 1 then return math.max(0, before) end
${rememberLua('counted')}
if redis.call('decr', KEYS[1]) > 0 then return before - 1 end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[1], '${WAKE_ONE}')
return 0
`)

/** Input: KEYS: semaphore or latch. Output: its number, 0 if there is none. */
export const readNumber = scriptOf(`
return tonumber(redis.call('get', KEYS[1]) or 0)
`)
