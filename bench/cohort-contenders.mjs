// The contestants for a hot lock. `url` names the store of ours, and the server of the peers.
import { Holdfast } from 'holdfast'
import { redisContenders } from './redis-contenders.mjs'

export const cohortContenders = {
  'holdfast cohort': (url) => holdfast(url, 'cohort'),
  'holdfast strict': (url) => holdfast(url, 'strict'),
  'redis-semaphore': redisContenders['redis-semaphore'],
  redlock: redisContenders.redlock,
  verrou: redisContenders.verrou,
}

async function holdfast(url, order) {
  const locks = await Holdfast.open(url, { order })
  const mutexes = Array.from({ length: 2 }, (_, task) => locks.mutex(`lock-${task}`))
  return {
    pair: async (task, onHeld) => {
      const hold = await mutexes[task].acquire()
      onHeld?.()
      await hold.release()
    },
    close: () => locks.close(),
  }
}
