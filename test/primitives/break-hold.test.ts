import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

/** The answer to the first attempt to break a hold is lost. */
function scene() {
  const world = new VirtualWorld({ seed: 1 })
  const store = new InterceptedStore(memory({ env: world.env({ name: 'server' }) }))
  let attempts = 0
  store.around = async (call, go) => {
    const reply = await go()
    return call.method === 'evict' && attempts++ === 0 ? new Promise<never>(() => {}) : reply
  }
  const [holder, operator] = ['holder', 'operator'].map(
    (name) => new Holdfast(store, { env: world.env({ name }) }),
  ) as [Holdfast, Holdfast]
  return { world, holder, operator, attempts: () => attempts }
}

it.each(['holder', 'operator'] as const)(
  'tells who held it although the first answer was lost, to the client of the %s',
  async (who) => {
    const { world, attempts, ...clients } = scene()
    const lock = clients.holder.mutex('door')
    const first = lock.acquire({ lease: '1h' })
    const passedOn = lock.acquire({ lease: '1h' })
    if (who === 'holder') await (await world.until(first)).release()
    const { fence } = await world.until(who === 'holder' ? passedOn : first)
    const broken = await world.until(clients[who].breakHold('door', { fence }))
    expect(broken.map((each) => each.fence)).toEqual([fence])
    expect(attempts()).toBe(2)
  },
)

it('tells of nobody where the fence is not that of the hold, although the first answer was lost', async () => {
  const { world, holder, operator } = scene()
  const { fence } = await world.until(holder.mutex('door').acquire({ lease: '1h' }))
  expect(await world.until(operator.breakHold('door', { fence: fence + 1 }))).toEqual([])
})
