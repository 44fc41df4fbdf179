import { scriptOf } from '../../../../stores/redis/lua/script.js'
import { answersLua, extendLua, WAKE_ONE } from './shared.js'

// The fair lock: the hash of an RLock; a list of the owners that wait; a sorted set of the time at
// which each of them counts as dead. Each owner has a channel of its own.

const KEYS_LUA = `
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
`

/** Removes owners at the head of the line whose time has passed. */
const evictLua = `${KEYS_LUA}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function evict()
  while true do
    local head = redis.call('lindex', queue, 0)
    local timeout = head and redis.call('zscore', timeouts, head)
    if not timeout or tonumber(timeout) > now then return end
    redis.call('zrem', timeouts, head)
    redis.call('lpop', queue)
  end
end
local function wakeNext(channel)
  local head = redis.call('lindex', queue, 0)
  if head then redis.call('publish', channel .. ':' .. head, '${WAKE_ONE}') end
end
`

/**
 * Input: KEYS: lock, queue, timeouts; ARGV: lease in ms, owner, count, 1 if the owner holds it
 * already, the time in ms for which a place in line is kept, 1 if the owner waits. Output: see
 * `answersLua`.
 */
export const takeFair = scriptOf(`${answersLua}${extendLua}${evictLua}
local owner, keepMs = ARGV[2], tonumber(ARGV[5])
evict()
if redis.call('hexists', lock, owner) == 1 then
  redis.call('hset', lock, owner, ARGV[3])
  extend(lock, ARGV[1])
  return 'granted'
end
if ARGV[4] == '1' then return 'gone' end
local head = redis.call('lindex', queue, 0)
if redis.call('exists', lock) == 0 and (not head or head == owner) then
  redis.call('lpop', queue)
  redis.call('zrem', timeouts, owner)
  -- Each waiter was given the time of all before it.
  for _, waiter in ipairs(redis.call('zrange', timeouts, 0, -1)) do
    redis.call('zincrby', timeouts, -keepMs, waiter)
  end
  redis.call('hset', lock, owner, ARGV[3])
  redis.call('pexpire', lock, ARGV[1])
  return 'granted'
end
if ARGV[6] == '0' or redis.call('zscore', timeouts, owner) then return busy(lock) end
local last = redis.call('lindex', queue, -1)
local lastTimeout = last and redis.call('zscore', timeouts, last)
local aheadMs = lastTimeout and lastTimeout - now or redis.call('pttl', lock)
redis.call('zadd', timeouts, string.format('%.0f', now + aheadMs + keepMs), owner)
redis.call('rpush', queue, owner)
return busy(lock)
`)

/**
 * Input: KEYS: lock, queue, timeouts; ARGV: owner, the entries that remain, channel. Output: 1 if
 * it was held.
 */
export const releaseFair = scriptOf(`${evictLua}
evict()
local isHeld = redis.call('hexists', lock, ARGV[1]) == 1
if isHeld and tonumber(ARGV[2]) > 0 then
  redis.call('hset', lock, ARGV[1], ARGV[2])
  return 1
end
if isHeld then redis.call('del', lock) end
if redis.call('exists', lock) == 0 then wakeNext(ARGV[3]) end
return isHeld and 1 or 0
`)

/**
 * Leaves the line. Input: KEYS: lock, queue, timeouts; ARGV: owner, the time in ms for which its
 * place was kept, channel.
 */
export const leaveFair = scriptOf(`${evictLua}
local isBehind = false
for _, waiter in ipairs(redis.call('lrange', queue, 0, -1)) do
  if isBehind then redis.call('zincrby', timeouts, -tonumber(ARGV[2]), waiter) end
  isBehind = isBehind or waiter == ARGV[1]
end
redis.call('zrem', timeouts, ARGV[1])
redis.call('lrem', queue, 0, ARGV[1])
if redis.call('exists', lock) == 0 then wakeNext(ARGV[3]) end
return 1
`)
