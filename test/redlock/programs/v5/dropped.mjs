// Locks that nobody looks at again, while the garbage is collected.
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Redlock from 'holdfast/redlock'
import { Redis } from 'ioredis'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
process.on('warning', (warning) => console.log(warning.message))

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis])
await redlock.acquire(['dropped'], 2000)
;(await redlock.acquire(['watched'], 2000)).signal.addEventListener('abort', () =>
  console.log('watched aborts'),
)
const end = Date.now() + 2500
while (Date.now() < end) {
  collect()
  await sleep(20)
}
await redlock.acquire(['dropped', 'watched'], 2000, { retryCount: 0 })
console.log('both are free')
await redis.quit()
