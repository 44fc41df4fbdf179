import { expect, it, onTestFinished } from 'vitest'
import type { InspectQuery, LineView } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import type { Operator } from '../../src/primitives/operator.js'
import { Poller } from '../../src/server/poller.js'
import type { ResourceDetail } from '../../src/server/shapes.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { stageOf, stoppedClock } from './dashboards.js'

it('who asks after a change is shown it, although a look was under way', async () => {
  const locks = new Holdfast(memory())
  onTestFinished(() => locks.close({ drain: 0 }))
  const { engine, operator } = Holdfast.contextOf(locks)
  // The first look has read the store, and its answer is on the way until the change is made.
  let arrive = (): void => {}
  const arrives = new Promise<void>((resolve) => {
    arrive = resolve
  })
  let reads = 0
  const slow = {
    async *inspect(query: InspectQuery) {
      const lines: LineView[] = []
      for await (const line of operator.inspect(query)) lines.push(line)
      reads++
      await arrives
      yield* lines
    },
  } as Operator
  const poller = new Poller(engine.env, slow)
  onTestFinished(() => poller.close())
  const hold = await locks.mutex('a').acquire()
  const before = poller.fresh()
  await expect.poll(() => reads).toBe(1)
  await hold.release()
  poller.hurry()
  const after = poller.fresh()
  arrive()
  await before
  await after
  expect([...poller.lines.keys()]).toEqual([])
  expect(reads).toBe(2)
})

it('what left while the store was down is a gap, and has no end', async () => {
  const { env, pass } = stoppedClock()
  const store = new InterceptedStore(memory())
  const locks = new Holdfast(store, { env })
  onTestFinished(() => locks.close({ drain: 0 }))
  const poller = new Poller(env, Holdfast.contextOf(locks).operator)
  onTestFinished(() => poller.close())
  const hold = await locks.mutex('a').acquire({ lease: '1h' })
  await poller.fresh()
  store.cut('inspect')
  for (let i = 0; i < 5; i++) {
    pass(5000)
    await expect(poller.fresh()).rejects.toThrow()
  }
  await hold.release()
  store.heal()
  pass(5000)
  await poller.fresh()
  expect(poller.timeline.of('a', undefined, env.wallMs())).toEqual([])
})

it('a line in which nobody is any more gives 404 to the lock API, and its past to the page', async () => {
  const { locks, get } = stageOf({ allowLocks: true })
  const hold = await locks.mutex('a').acquire()
  await get('api/resources')
  await hold.release()
  await expect
    .poll(async () => {
      await get('api/resources')
      const detail = (await (await get('api/resources/a')).json()) as ResourceDetail
      return detail.timeline?.length
    })
    .toBe(1)
  expect((await get('v1/locks/a')).status).toBe(404)
})
