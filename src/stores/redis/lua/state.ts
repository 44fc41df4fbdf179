import { defineScript } from './script.js'

/**
 * A state is one string: LAST VERSION EXPIRES VALUE. VERSION 0: deleted; LAST is then the number of
 * the deletion, kept for a while so that no version is used twice. EXPIRES is in microseconds of
 * the server's clock, 0 for never.
 */
const stateLua = `
local last, version, expires, value = 0, 0, 0, nil
local text = redis.call('GET', KEYS[1])
if text then
  local a, b, c, d = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
  last, version, expires, value = tonumber(a), tonumber(b), tonumber(c), d
end
if expires > 0 and expires <= wall then version = 0 end
if version == 0 then value = '' end
`

/**
 * Reads a state.
 *
 *     KEYS[1]  the state (1 key)
 *     ARGV[1]  retentionMs
 *     result   LAST, VERSION (0: there is none), VALUE
 */
export const readScript = defineScript(`${stateLua}
return { string.format('%.0f', last), string.format('%.0f', version), value }
`)

/**
 * Compare-and-set of a state. A change is published on the state's own channel.
 *
 *     KEYS[1]     the state (1 key)
 *     ARGV[1..6]  retentionMs, channel, expect (0: there must be none), keepMs (0: for ever),
 *                 kind (set or delete), value
 *     result      1 or 0 (another version is there), VERSION (0: there is none), VALUE, as they are now
 */
export const writeScript = defineScript(`${stateLua}
local expect, keepMs = tonumber(ARGV[3]), tonumber(ARGV[4])
if version ~= expect then return { 0, string.format('%.0f', version), value } end
local isDeletion = ARGV[5] == 'delete'
-- Deleting what does not exist is no change, so nobody is told.
if isDeletion and version == 0 then return { 1, '0', '' } end
last = math.max(last + 1, wall)
version, value, expires = last, ARGV[6], 0
if isDeletion then version, value, keepMs = 0, '', 1 end
if keepMs > 0 then expires = wall + keepMs * 1000 end
local number = string.format('%.0f', last)
local shown = string.format('%.0f', version)
redis.call('SET', KEYS[1], number .. ' ' .. shown .. ' ' .. string.format('%.0f', expires) .. ' ' .. value)
if keepMs > 0 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(keepMs + math.max(last - wall, 0) / 1000) + retentionUs / 1000))
end
redis.call('PUBLISH', ARGV[2], number)
return { 1, shown, value }
`)
