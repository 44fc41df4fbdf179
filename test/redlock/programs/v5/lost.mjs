// A lock that is lost while its routine runs: the server forgets everything.
import { once } from 'node:events'
import { Redis } from 'ioredis'
import Redlock, { ExecutionError, ResourceLockedError } from 'redlock'

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis], { retryCount: 1, retryDelay: 20, retryJitter: 0 })
let locked = 0
redlock.on('error', (error) => {
  if (error instanceof ResourceLockedError) locked++
})

try {
  await redlock.using(['a'], 2500, { automaticExtensionThreshold: 2000 }, async (signal) => {
    console.log('inside', signal.aborted, signal.error)
    await redis.flushall()
    await once(signal, 'abort')
    console.log('aborted', signal.aborted, signal.error instanceof ExecutionError, signal.reason.name)
    throw signal.error
  })
} catch (error) {
  console.log('rejected', error instanceof ExecutionError)
}
console.log('told', locked > 0)

// It lasts longer than its duration while nothing goes wrong.
const value = await redlock.using(['a'], 2500, { automaticExtensionThreshold: 1500 }, async (signal) => {
  for (const start = Date.now(); Date.now() - start < 3500; )
    await new Promise((resolve) => setTimeout(resolve, 50))
  const second = await redlock.acquire(['a'], 2500).catch((error) => error.name)
  return [signal.aborted, second].join()
})
console.log('value', value)
await redlock.quit()
