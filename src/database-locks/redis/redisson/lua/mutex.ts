import { scriptOf } from '../../../../stores/redis/lua/script.js'
import { answersLua, extendLua, WAKE_ONE } from './shared.js'

// RLock and RFencedLock: a hash with one field, the owner, and the count of its entries. Redisson
// adds to the count and takes off. These scripts set it, so that a second sending changes nothing.

/**
 * Input: KEYS[1] the lock, KEYS[2] the token of a fenced lock, or none; ARGV: lease in ms, owner,
 * count, 1 if the owner holds it already. Output: see `answersLua`.
 */
export const takeMutex = scriptOf(`${answersLua}${extendLua}
local isOwner = redis.call('hexists', KEYS[1], ARGV[2]) == 1
if ARGV[4] == '1' and not isOwner then return 'gone' end
if not isOwner and redis.call('exists', KEYS[1]) == 1 then return busy(KEYS[1]) end
redis.call('hset', KEYS[1], ARGV[2], ARGV[3])
extend(KEYS[1], ARGV[1])
if not KEYS[2] then return 'granted' end
local token = isOwner and redis.call('get', KEYS[2]) or redis.call('incr', KEYS[2])
return 'granted ' .. token
`)

/** Input: KEYS[1] the lock; ARGV: lease in ms, owner. Output: 1 if it is still held. */
export const renewMutex = scriptOf(`${extendLua}
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end
extend(KEYS[1], ARGV[1])
return 1
`)

/**
 * Input: KEYS[1] the lock; ARGV: owner, the entries that remain, channel. Output: 1 if it was held.
 */
export const releaseMutex = scriptOf(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if tonumber(ARGV[2]) > 0 then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[3], '${WAKE_ONE}')
return 1
`)
