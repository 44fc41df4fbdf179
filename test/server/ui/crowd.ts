import { setTimeout as pause } from 'node:timers/promises'
import { inLine, type World } from './world.js'

const HOSTS = ['api-1', 'api-2', 'api-3', 'worker-1', 'worker-2']
const LABELS = ['checkout', 'refund', 'export', 'restock']

/** Takes of two lists in turn, without chance: a picture made again looks the same. */
function turn<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T
}

/** Some twenty resources with lines of different lengths. */
export async function crowd(world: World): Promise<void> {
  for (let index = 0; index < 14; index++) {
    const name = `${turn(['order', 'invoice', 'account'], index)}:${1041 + index * 37}`
    const label = turn(LABELS, index)
    world.keep(await world.on(turn(HOSTS, index)).mutex(name).acquire({ label }))
    for (let waiter = 1; waiter < 6 - index; waiter++) {
      const client = world.on(turn(HOSTS, index + waiter))
      await inLine(world, name, () => client.mutex(name).acquire({ label: turn(LABELS, index + waiter) }))
    }
  }
}

/** Every host takes the same lock again and again, until the returned function is called. */
export function busy(world: World, name: string, holdMs: number): () => Promise<void> {
  let isOver = false
  const loops = HOSTS.map(async (host, index) => {
    const lock = world.on(host).mutex(name)
    for (let round = 0; !isOver; round++) {
      const hold = await lock.acquire({ label: turn(LABELS, index + round) }).catch(() => null)
      if (!hold) return
      await pause(holdMs * (1 + ((index * 7 + round * 3) % 5) / 2))
      await hold.release()
      await pause(holdMs)
    }
  })
  return async () => {
    isOver = true
    await Promise.all(loops)
  }
}
