import { scriptOf } from '../../../../stores/redis/lua/script.js'
import { answersLua, extendLua, WAKE_ALL, WAKE_ONE } from './shared.js'

// The read-write lock: a hash with the field `mode`; for each reader a field, its owner, with a
// count, and for each count a key with the lease; for a writer the field `OWNER:write`.

/** The key of one entry of a reader. `KEYS[2]` is what they all begin with. */
const leaseKeyLua = `
local function leaseKey(owner, count)
  return KEYS[2] .. ':' .. owner .. ':rwlock_timeout:' .. count
end
`

/**
 * Input: KEYS[1] the lock, KEYS[2] the beginning of the keys of leases; ARGV: lease in ms, owner,
 * count, 1 if the owner holds it already. Output: see `answersLua`.
 */
export const takeRead = scriptOf(`${answersLua}${extendLua}${leaseKeyLua}
local owner = ARGV[2]
local mode = redis.call('hget', KEYS[1], 'mode')
local isWriter = redis.call('hexists', KEYS[1], owner .. ':write') == 1
if ARGV[4] == '1' and not isWriter and redis.call('hexists', KEYS[1], owner) == 0 then return 'gone' end
if mode == 'write' and not isWriter then return busy(KEYS[1]) end
if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end
redis.call('hset', KEYS[1], owner, ARGV[3])
redis.call('set', leaseKey(owner, ARGV[3]), 1, 'px', ARGV[1])
extend(KEYS[1], ARGV[1])
return 'granted'
`)

/** Input and output as `takeRead`; the owner is that of the reader. */
export const takeWrite = scriptOf(`${answersLua}${extendLua}
local field = ARGV[2] .. ':write'
local isWriter = redis.call('hexists', KEYS[1], field) == 1
if ARGV[4] == '1' and not isWriter then return 'gone' end
if not isWriter and redis.call('hexists', KEYS[1], 'mode') == 1 then return busy(KEYS[1]) end
redis.call('hset', KEYS[1], 'mode', 'write', field, ARGV[3])
extend(KEYS[1], ARGV[1])
return 'granted'
`)

/** Input: KEYS as `takeRead`; ARGV: lease in ms, owner. Output: 1 if it is still held. */
export const renewRead = scriptOf(`${extendLua}${leaseKeyLua}
local count = redis.call('hget', KEYS[1], ARGV[2])
if not count or redis.call('exists', leaseKey(ARGV[2], 1)) == 0 then return 0 end
for entry = 1, tonumber(count) do extend(leaseKey(ARGV[2], entry), ARGV[1]) end
extend(KEYS[1], ARGV[1])
return 1
`)

/** Input: KEYS as `takeRead`; ARGV: lease in ms, owner. Output: 1 if it is still held. */
export const renewWrite = scriptOf(`${extendLua}
if redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then return 0 end
extend(KEYS[1], ARGV[1])
return 1
`)

/**
 * Input: KEYS as `takeRead`; ARGV: owner, the entries that remain, channel. Output: 1 if it was
 * held.
 */
export const releaseRead = scriptOf(`${leaseKeyLua}
local owner, remaining = ARGV[1], tonumber(ARGV[2])
if redis.call('hexists', KEYS[1], owner) == 0 then return 0 end
if remaining > 0 then redis.call('hset', KEYS[1], owner, remaining)
else redis.call('hdel', KEYS[1], owner) end
redis.call('del', leaseKey(owner, remaining + 1))
if redis.call('hget', KEYS[1], 'mode') == 'write' then return 1 end
-- The lock lives as long as the longest lease of the readers that remain.
local longest = 0
local fields = redis.call('hgetall', KEYS[1])
for i = 1, #fields, 2 do
  for entry = 1, tonumber(fields[i + 1]) or 0 do
    longest = math.max(longest, redis.call('pttl', leaseKey(fields[i], entry)))
  end
end
if longest > 0 then
  redis.call('pexpire', KEYS[1], longest)
  return 1
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[3], '${WAKE_ONE}')
return 1
`)

/**
 * Input: KEYS as `takeRead`; ARGV: owner, the entries that remain, channel. Output: 1 if it was
 * held.
 */
export const releaseWrite = scriptOf(`
local field = ARGV[1] .. ':write'
if redis.call('hexists', KEYS[1], field) == 0 then return 0 end
if tonumber(ARGV[2]) > 0 then
  redis.call('hset', KEYS[1], field, ARGV[2])
  return 1
end
redis.call('hdel', KEYS[1], field)
-- What remains beside the mode is a reader that entered inside the writer.
if redis.call('hlen', KEYS[1]) == 1 then redis.call('del', KEYS[1])
else redis.call('hset', KEYS[1], 'mode', 'read') end
redis.call('publish', ARGV[3], '${WAKE_ALL}')
return 1
`)
