// Acquire, extend and release by hand, and what another contender gets meanwhile.
import { Redis } from 'ioredis'
import Redlock, { ExecutionError, Lock, ResourceLockedError } from 'redlock'

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis])
const errors = []
redlock.on('error', (error) => errors.push(error.name))

const before = Date.now()
let lock = await redlock.acquire(['a', 'b'], 5000)
console.log('lock', lock instanceof Lock, lock.redlock === redlock, lock.resources.join())
console.log('value', typeof lock.value, lock.value.length)
const left = lock.expiration - before
console.log('expires in time', left > 4000 && left <= 5000 + (Date.now() - before))
const [stats] = await Promise.all(lock.attempts)
console.log(
  'votes',
  stats.membershipSize,
  stats.quorumSize,
  stats.votesFor.has(redis),
  stats.votesAgainst.size,
)

try {
  await redlock.acquire(['b'], 1000, { retryCount: 0 })
} catch (error) {
  console.log(error instanceof ExecutionError, error.name, error.message)
  for (const attempt of error.attempts) {
    const { votesFor, votesAgainst } = await attempt
    const reason = votesAgainst.get(redis)
    console.log(votesFor.size, votesAgainst.size, reason instanceof ResourceLockedError, reason.message)
  }
}

const first = lock
lock = await lock.extend(20_000)
console.log('another object', lock !== first, 'same value', lock.value === first.value)
console.log('replaced', first.expiration, 'longer', lock.expiration - Date.now() > 15_000)

const released = await lock.release()
console.log('released', lock.expiration, released.attempts.length, (await released.attempts[0]).votesFor.size)
const again = await redlock.acquire(['b'], 5000, { retryCount: 0 })
await redlock.release(again)
console.log('errors', [...new Set(errors)].join())
console.log('settings', JSON.stringify(redlock.settings), redlock.clients.has(redis))
await redis.quit()
