import { defineScript } from './script.js'

/**
 * Lines as they are, for `inspect`. It only reads; the client puts the claims in order, since a
 * long line must not hold up the server.
 *
 *     KEYS[1..n]  the lines (in a Cluster: 1 key)
 *     ARGV[1]     retentionMs
 *     result      the server's time in microseconds, and each hash as HGETALL gives it
 */
export const viewScript = defineScript(`
local lines = { string.format('%.0f', wall) }
for _, key in ipairs(KEYS) do lines[#lines + 1] = redis.call('HGETALL', key) end
return lines
`)
