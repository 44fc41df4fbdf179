// Locks that Bluebird's using releases.
const { using } = require('bluebird')
const { Redis } = require('ioredis')
const Redlock = require('redlock')

const redlock = new Redlock([new Redis(process.env.REDIS_URL)], {
  retryCount: 1,
  retryDelay: 10,
  retryJitter: 0,
})
const resource = 'locks:account:322456'
const onUnlockError = (error) => console.log('not released:', error.message)

async function main() {
  const value = await using(redlock.disposer(resource, 5000, onUnlockError), async (lock) => {
    console.log('inside', lock.resource)
    const extended = await lock.extend(10_000)
    console.log('the same object', extended === lock)
    const refused = await redlock.lock(resource, 1000).catch((error) => error.name)
    return `refused: ${refused}`
  })
  console.log(value)
  const failure = await using(redlock.disposer(resource, 5000), async () => {
    throw new Error('insufficient balance')
  }).catch((error) => error.message)
  console.log(failure)
  await using(redlock.disposer(resource, 5000, onUnlockError), (lock) => lock.unlock())
  const lock = await redlock.lock(resource, 5000)
  console.log('free again', lock.resource)
  const never = await using(redlock.disposer(resource, 5000), () => 'inside').catch((error) => error.name)
  console.log(never)
  await lock.unlock()
  await redlock.quit()
}

main()
