import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

/** The store, but the answers to pulses are kept back until `go`. */
function withLateAnswers(store: Store, go: Promise<void>): Store {
  return {
    ...store,
    connect(client) {
      const real = store.connect(client)
      const pulse: Connection['pulse'] = async (beats) => {
        const replies = await real.pulse(beats)
        await go
        return replies
      }
      return new Proxy(real, {
        get: (target, key) => (key === 'pulse' ? pulse : Reflect.get(target, key)?.bind(target)),
      })
    },
  }
}

it('believes that others wait, also where an older answer comes later and says that nobody does', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const go = deferred<void>()
  const env = world.env({ name: 'many' })
  const many = new Holdfast(withLateAnswers(store, go.promise), { env })
  const lone = new Holdfast(store, { env: world.env({ name: 'lone' }) })
  const served: string[] = []
  const work = async (): Promise<void> => {
    served.push('many')
    await new Promise<void>((resolve) => env.timer(20, resolve, { keepAlive: true }))
  }

  const all = [...Array(20)].map(() => many.mutex('door').run(work))
  // The first hold is over, and fences for the next ones have been asked for: nobody else waits.
  await world.run(world.timeMs + 30)
  expect(served).toEqual(['many'])
  all.push(lone.mutex('door').run(async () => void served.push('lone')))
  await world.run(world.timeMs + 1)
  go.resolve()
  await world.until(Promise.all(all))
  expect(served.indexOf('lone')).toBeLessThan(6)
  await world.until(Promise.all([many.close(), lone.close()]))
})
