// Thirty contenders for one resource, each for 50 ms, with the default settings.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import Redlock from 'redlock'

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis])
await redis.ping()
let inside = 0
let most = 0

async function contender() {
  const lock = await redlock.acquire(['hot'], 5000)
  most = Math.max(most, ++inside)
  await sleep(50)
  inside--
  await lock.release()
}

const outcomes = await Promise.allSettled(Array.from({ length: 30 }, contender))
const served = outcomes.filter(({ status }) => status === 'fulfilled').length
console.log(JSON.stringify({ served, most }))
await redlock.quit()
