import { defineScript } from './script.js'

/**
 * A line as it is, for `inspect`. It only reads; the client puts the claims in order, since a long
 * line must not hold up the server.
 *
 *     KEYS[1]  the line (1 key)
 *     ARGV[1]  retentionMs
 *     result   the server's time in microseconds, and the hash as HGETALL gives it
 */
export const viewScript = defineScript(`
return { string.format('%.0f', wall), redis.call('HGETALL', KEYS[1]) }
`)
