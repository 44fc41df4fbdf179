// Locks that have ended: what release, extend and using say.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import Redlock from 'redlock'

const redis = new Redis(process.env.REDIS_URL)
const redlock = new Redlock([redis], { retryCount: 2, retryDelay: 10, retryJitter: 5 })

async function attempt(what, work) {
  try {
    const value = await work()
    console.log(what, 'went well', value ?? '')
  } catch (error) {
    const attempts = await Promise.all(error.attempts ?? [])
    const last = attempts.at(-1)?.votesAgainst.get(redis)
    console.log(what, '|', error.message, last ? `| ${last.name}: ${last.message}` : '')
  }
}

const held = await redlock.acquire(['held'], 60_000)
await attempt('held elsewhere', () => redlock.acquire(['free', 'held'], 1000))
await attempt('nothing is left behind', () =>
  redlock.acquire(['free'], 1000, { retryCount: 0 }).then(() => 'free'),
)

const expired = await redlock.acquire(['expired'], 1500)
await sleep(1700)
await attempt('extend an expired lock', () => expired.extend(1000))
await attempt('release an expired lock', () => expired.release())
await attempt('it is free', () => redlock.acquire(['expired'], 1000, { retryCount: 0 }).then(() => 'free'))

const released = await redlock.acquire(['released'], 60_000)
await released.release()
await attempt('extend a released lock', () => released.extend(1000))
await attempt('release it twice', () => released.release())

const extended = await held.extend(60_000)
await attempt('extend the replaced lock', () => held.extend(1000))
await attempt('release by the replaced lock', () => held.release().then(() => 'released'))
await attempt('release after that', () => extended.release())

await attempt('a part of a millisecond', () => redlock.acquire(['a'], 10.5))
await attempt('a duration that is too short', () => redlock.using(['a'], 550, async () => {}))
await attempt('no routine', () => redlock.using(['a'], 5000, {}))
await attempt('no client', async () => new Redlock([]))
await attempt('no resources', () => redlock.using([], 5000, async () => 'ran'))
await attempt('a routine that fails', () =>
  redlock.using(['a'], 5000, async () => {
    throw new Error('insufficient balance')
  }),
)
await attempt('after it', () => redlock.acquire(['a'], 1000, { retryCount: 0 }).then(() => 'free'))
await redlock.quit()
