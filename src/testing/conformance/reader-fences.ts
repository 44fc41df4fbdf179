import type { Hold } from '../../primitives/hold.js'
import { assertIncreasing, eventually, inTime, settled } from './checks.js'
import { holdAnswers, readers } from './reader-scene.js'
import { LONG_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** The fences of readers that share a claim: a reader that asks later has a greater one. */
export const readerFenceCases: readonly CaseSpec[] = [
  {
    title:
      'a reader that gets the place of one who gave up has a greater fence than those that came before it',
    behaviours: [66, 75],
    async run(scene) {
      const { read, store } = readers(scene)
      const other = scene.client().readWrite('config')
      const writer = await other.write.acquire({ lease })
      const giveUp = new AbortController()
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      await scene.waiting('config', 1)
      const late: (() => void)[] = []
      store.onPush = (_news, deliver) => void late.push(deliver)
      // From here on the place is a grant, which nobody knows of when it goes to the next one.
      await writer.release()
      const before = await other.read.acquire({ lease })
      const next = read.acquire({ lease })
      giveUp.abort()
      await gone
      store.heal()
      for (const deliver of late) deliver()
      assertIncreasing([before.fence, (await inTime('the next reader', next)).fence])
    },
  },
  {
    title: 'the fence of a reader that comes later is greater than those of other processes that came before',
    behaviours: [66, 75],
    async run(scene) {
      const { read } = readers(scene)
      const fences = [(await read.acquire({ lease })).fence]
      const giveUp = new AbortController()
      const other = scene.client().readWrite('config').read
      for (let time = 0; time < 5; time++) {
        // A reader that a fence was asked for may be gone when the fence comes. No later reader
        // gets it.
        const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
        const two = await Promise.all([read.acquire({ lease }), read.acquire({ lease })])
        fences.push(...two.map(({ fence }) => fence))
        fences.push((await other.acquire({ lease })).fence)
        await gone
      }
      giveUp.abort()
      assertIncreasing(fences)
    },
  },
  {
    title: 'a reader that comes while fences are on their way to others gets a later one',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, async () => {}),
  },
  {
    title: 'a reader that takes over while fences are on their way to others gets a later one',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, (first) => first.release()),
  },
  {
    title: 'a claim that takes nobody in any more brings nobody a fence',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, async (_first, closed) => void settled(closed.extend(50))),
  },
  {
    title: 'fences that were asked for a reader that gave up are not given to later readers',
    behaviours: [66, 75],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      const answers = holdAnswers(store)
      const second = read.acquire({ lease })
      const giveUp = new AbortController()
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      const third = read.acquire({ lease })
      await eventually('the first asking', () => store.count('pulse') === 1)
      answers.pass()
      await eventually('the asking for two', () => store.count('pulse') === 2)
      giveUp.abort()
      await gone
      answers.pass()
      const three = [first, await inTime('the second', second), await inTime('the third', third)]
      const { fence } = await scene.client().readWrite('config').read.acquire({ lease })
      const late = read.acquire({ lease })
      // What they had is the late one's now, but no fence from before it came.
      for (const hold of three) await hold.release()
      store.heal()
      answers.pass()
      assertIncreasing([fence, (await inTime('the late one', late)).fence])
    },
  },
  {
    title: 'fences that came with a grant are not given to readers that came after it',
    behaviours: [66, 75],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      const writer = scene.client().readWrite('config').write.acquire({ lease })
      await scene.waiting('config', 1)
      const giveUp = new AbortController()
      const next = read.acquire({ lease })
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      await scene.waiting('config', 2)
      // The grant is not heard of until another process reads, too, and one more reader has come.
      store.onPush = () => {}
      await first.release()
      await (await inTime('the writer', writer)).release()
      const other = await scene.client().readWrite('config').read.acquire({ lease })
      giveUp.abort()
      await gone
      const late = read.acquire({ lease })
      store.tell({ type: 'gap' })
      const [early, last] = await inTime('both', Promise.all([next, late]))
      assertIncreasing([Math.max(early.fence, other.fence), last.fence])
    },
  },
]

/**
 * Fences are asked for, another process reads, and one more reader asks. The first readers are gone
 * when the answer comes.
 */
async function comeLate(
  scene: Scene,
  meanwhile: (first: Hold, closed: Hold) => Promise<unknown>,
): Promise<void> {
  if (!(await scene.tellsOfWaiters())) return
  const { read, store } = readers(scene)
  const closed = await read.acquire({ lease })
  await closed.extend(50)
  const first = await read.acquire({ lease })
  const giveUp = new AbortController()
  const answers = holdAnswers(store)
  const asked = store.count('pulse')
  const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
  await eventually('the asking', () => store.count('pulse') > asked)
  const { fence } = await scene.client().readWrite('config').read.acquire({ lease })
  const late = read.acquire({ lease })
  giveUp.abort()
  await gone
  await meanwhile(first, closed)
  store.heal()
  answers.pass()
  assertIncreasing([fence, (await inTime('the late one', late)).fence])
}
