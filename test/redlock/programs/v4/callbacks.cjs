// The same with callbacks.
const { Redis } = require('ioredis')
const Redlock = require('redlock')

const redlock = new Redlock([new Redis(process.env.REDIS_URL)], {
  retryCount: 1,
  retryDelay: 10,
  retryJitter: 0,
})
const resource = 'locks:account:322456'

redlock.lock(resource, 5000, (error, lock) => {
  console.log('locked', error, lock.resource)
  redlock.lock(resource, 5000, (refused, second) => {
    console.log('refused', refused.name, second)
    lock.extend(10_000, (failure, extended) => {
      console.log('extended', failure, extended === lock)
      lock.unlock((...unlocked) => {
        console.log('unlocked', unlocked)
        lock.unlock((again) => {
          console.log('twice', again.message)
          redlock.quit((ended, results) => console.log('quit', ended, results))
        })
      })
    })
  })
})
