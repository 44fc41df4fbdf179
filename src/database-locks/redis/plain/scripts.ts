import { scriptOf } from '../../../stores/redis/lua/script.js'

/**
 * Input: KEYS[1] the key; ARGV[1] the token, ARGV[2] the lease in ms. Output: 1 if the key is ours
 * now, otherwise 0.
 */
export const takeKey = scriptOf(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** Input: KEYS[1] the key; ARGV[1] the token, ARGV[2] the lease in ms. Output: 1 if renewed. */
export const renewKey = scriptOf(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** Input: KEYS[1] the key; ARGV[1] the token. Output: 1 if deleted. */
export const deleteKey = scriptOf(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`)
