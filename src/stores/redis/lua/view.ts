import { defineScript } from './script.js'

/**
 * A line as it is, for `inspect`. Only reads, and leaves the sorting to the client: a long line must not hold up the server.
 *
 *     KEYS[1]  the line
 *     result   the server's time in microseconds, and the hash as HGETALL gives it
 */
export const viewScript = defineScript(`
return { string.format('%.0f', wall), redis.call('HGETALL', KEYS[1]) }
`)
