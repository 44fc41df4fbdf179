// Locks with promises.
const { Redis } = require('ioredis')
const Redlock = require('redlock')

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis], { driftFactor: 0.01, retryCount: 2, retryDelay: 10, retryJitter: 5 })
redlock.on('clientError', (error) => console.log('a redis error has occurred:', error))
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function attempt(what, work) {
  try {
    console.log(what, 'went well', (await work()) ?? '')
  } catch (error) {
    console.log(what, '|', error instanceof Redlock.LockError, error.name, '|', error.message)
  }
}

async function main() {
  const lock = await redlock.lock('locks:account:322456', 5000)
  console.log(lock instanceof Redlock.Lock, lock.redlock === redlock, lock.resource, lock.value.length)
  console.log('attempts', lock.attempts, 'expires in time', lock.expiration > Date.now() + 500)
  await attempt('held elsewhere', () => redlock.lock(['free', 'locks:account:322456'], 1000))

  const extended = await lock.extend(20_000)
  console.log('the same object', extended === lock, 'longer', lock.expiration > Date.now() + 10_000)
  await attempt('unlock', () => lock.unlock())
  console.log('expiration', lock.expiration)
  await attempt('unlock twice', () => lock.unlock())
  await attempt('extend after it', () => lock.extend(1000))

  const several = await redlock.acquire(['a', 'b', 'c'], 5000)
  await attempt('one of several', () => redlock.lock('b', 1000))
  await attempt('release', () => redlock.release(several))
  await attempt('one of several', () => redlock.lock('b', 5000).then((one) => redlock.unlock(one)))

  const expired = await redlock.lock('expired', 1500)
  await sleep(1700)
  await attempt('extend an expired lock', () => expired.extend(1000))
  await attempt('unlock an expired lock', () => expired.unlock())
  const other = await redlock.lockWithOptions('expired', 5000, { retryCount: 1, retryDelay: 5 })
  await attempt('with options', () => other.unlock())
  console.log('options', redlock.retryCount, redlock.retryDelay, redlock.driftFactor, redlock.servers.length)
  console.log('quit', await redlock.quit())
}

main()
