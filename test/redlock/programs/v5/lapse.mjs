// A job that runs once in a while: it takes a lock, and lets it lapse.
import { Redis } from 'ioredis'
import Redlock from 'redlock'

const connect = () => new Redlock([new Redis(process.env.REDIS_URL)], { retryCount: 0 })

async function job(redlock) {
  return redlock.acquire(['job'], 2500).then(
    () => 'ran',
    () => 'skipped',
  )
}

const [first, second] = [connect(), connect()]
console.log(await job(first), await job(second), await job(first))
// Neither the end of the process nor quit() ends the lock.
await first.quit()
console.log(await job(second))

// Waits for the end of it.
const lock = await second.acquire(['job'], 2500, { retryCount: -1, retryDelay: 50, retryJitter: 0 })
console.log('mine', lock.resources.join())
await lock.release()
console.log(await job(second))
await second.quit()
