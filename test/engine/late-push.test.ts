import { expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import type { ClaimReply, Connection, Push, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const unavailable = () => new HoldfastError('STORE_UNAVAILABLE', 'no answer', { retryable: true })

/**
 * The store, but claims reach it without their answers coming back, or not at all, and pushes are
 * kept back.
 */
function behindBadNetwork(store: Store) {
  const network = {
    claims: 'answered' as 'answered' | 'unanswered' | 'dropped',
    kept: [] as Push[],
    deliver: (_: Push) => {},
  }
  const wrapped: Store = {
    ...store,
    connect(client) {
      network.deliver = (news) => client.push(news)
      const real = store.connect({ ...client, push: (news) => network.kept.push(news) })
      const claim: Connection['claim'] = async (request): Promise<ClaimReply> => {
        if (network.claims === 'dropped') throw unavailable()
        const reply = await real.claim(request)
        if (network.claims === 'unanswered') throw unavailable()
        return reply
      }
      return new Proxy(real, {
        get: (target, key) => (key === 'claim' ? claim : Reflect.get(target, key)?.bind(target)),
      })
    },
  }
  return { network, wrapped }
}

it('does not take the late push of a grant for one of its new place in line', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const { network, wrapped } = behindBadNetwork(store)
  const others = new Holdfast(store, { env: world.env({ name: 'others' }) })
  const late = new Holdfast(wrapped, { env: world.env({ name: 'late' }) })

  // The claim arrives, its answer does not. It is promoted, but that news is under way for long,
  // and the hold lapses.
  const first = await world.until(others.mutex('r').acquire())
  network.claims = 'unanswered'
  let isHeld = false
  const waiting = late.mutex('r').acquire({ lease: 500 })
  void waiting.then(() => {
    isHeld = true
  })
  await world.run(world.timeMs + 1)
  network.claims = 'dropped'
  await world.until(first.release())
  const second = await world.until(others.mutex('r').acquire({ wait: '5s' }))
  expect(network.kept).toHaveLength(1)

  // The repeated request arrives: the claim stands in line again, under the same id, and is told
  // so.
  network.claims = 'answered'
  await world.run(world.timeMs + 1000)
  for (const news of network.kept.splice(0)) network.deliver(news)
  await world.run(world.timeMs + 1000)
  expect({ isHeld, isSecondValid: second.isValid }).toEqual({ isHeld: false, isSecondValid: true })

  await world.until(second.release())
  for (const news of network.kept.splice(0)) network.deliver(news)
  expect((await world.until(waiting)).fence).toBeGreaterThan(second.fence)
  await world.until(Promise.all([others.close(), late.close()]))
})
