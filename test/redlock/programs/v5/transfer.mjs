// Transfers between accounts, each under the locks of both. The sum stays the same.
import { Redis } from 'ioredis'
import Redlock, { ResourceLockedError } from 'redlock'

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis], {
  driftFactor: 0.01,
  retryCount: 200,
  retryDelay: 20,
  retryJitter: 10,
  automaticExtensionThreshold: 500,
})
redlock.on('error', (error) => {
  if (!(error instanceof ResourceLockedError)) console.error(error)
})

const balances = new Map([
  ['alice', 100],
  ['bob', 100],
  ['carol', 100],
])

async function transfer(from, to, amount) {
  return redlock.using([from, to], 5000, async (signal) => {
    const [have, has] = [balances.get(from), balances.get(to)]
    await redis.ping()
    if (signal.aborted) throw signal.error
    balances.set(from, have - amount)
    balances.set(to, has + amount)
    return amount
  })
}

const done = await Promise.all([
  transfer('alice', 'bob', 10),
  transfer('bob', 'alice', 5),
  transfer('bob', 'carol', 20),
  transfer('carol', 'alice', 1),
  transfer('alice', 'carol', 3),
])
console.log('transferred', done.join(' '))
console.log(Object.fromEntries(balances))
await redlock.quit()
console.log('status', redis.status)
