import { expect, it } from 'vitest'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

/** The store, but the first pulse with a claim is never answered: its connection is dead. */
function withoutFirstPulse(store: Store, onSilence: () => void): Store {
  let isFirst = true
  return {
    ...store,
    connect(client) {
      const real = store.connect(client)
      const pulse: Connection['pulse'] = (beats) => {
        if (!isFirst) return real.pulse(beats)
        isFirst = false
        onSilence()
        return new Promise(() => {})
      }
      return new Proxy(real, {
        get: (target, key) => (key === 'pulse' ? pulse : Reflect.get(target, key)?.bind(target)),
      })
    },
  }
}

it('renews a hold with a short lease while another call goes unanswered', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  let isSilent = false
  const silentStore = withoutFirstPulse(store, () => {
    isSilent = true
  })
  const locks = new Holdfast(silentStore, { env: world.env({ name: 'client' }) })
  const long = await world.until(locks.mutex('long').acquire({ lease: '30s' }))
  while (!isSilent) await world.run(world.timeMs + 10)
  const short = await world.until(locks.mutex('short').acquire({ lease: '1s' }))
  await world.run(world.timeMs + 60_000)
  expect([long.isValid, short.isValid]).toEqual([true, true])
  await world.until(locks.close({ drain: 0 }))
})
