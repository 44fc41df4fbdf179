/**
 * The answers of the scripts that take a lock: `granted`, or `granted TOKEN`; `busy PTTL`; `gone`
 * if the lock that a nested call wanted to enter again is no longer there.
 */
export const answersLua = `
local function busy(key)
  return 'busy ' .. redis.call('pttl', key)
end
`

/** Never shortens: an outer hold, or another reader, may have a longer lease. */
export const extendLua = `
local function extend(key, leaseMs)
  if redis.call('pttl', key) < tonumber(leaseMs) then redis.call('pexpire', key, leaseMs) end
end
`

/** What Redisson publishes: one waiter, or all of them, should try again. */
export const WAKE_ONE = '0'
export const WAKE_ALL = '1'
