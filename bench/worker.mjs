// One process of a contended run: `tasks` loops on one lock, each `turns` times, or for a while
// (`1500ms`). Tells the parent when they are over, or when the parent has waited for long enough.
// With `times`, it tells when each turn was asked for and had, and when the first one was. Before
// that it warms up on another lock.
import { WARM_UP_MS } from './measure.mjs'

const [suite, name, folder, tasks, turns, wantsTimes] = process.argv.slice(2)
// Only those of this suite: the peers of the others are nothing to it.
const file = suite === 'embedded' ? './contenders.mjs' : `./${suite}-contenders.mjs`
const [contenders] = Object.values(await import(file))
const { pair, close } = await contenders[name](folder)
const warmUntil = performance.now() + WARM_UP_MS
await Promise.all(
  Array.from({ length: Number(tasks) }, async () => {
    while (performance.now() < warmUntil) await pair(1)
  }),
)
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))

const start = performance.now()
const done = Array.from({ length: Number(tasks) }, () => ({ turns: 0, atMs: 0 }))
const times = []
const [most, longestMs] = turns.endsWith('ms')
  ? [Infinity, Number.parseFloat(turns)]
  : [Number(turns), Infinity]
const report = () => (wantsTimes ? { times } : done)
process.once('message', () => process.send(report(), () => process.exit()))
await Promise.all(
  done.map(async (task) => {
    while (task.turns < most && performance.now() - start < longestMs) {
      const askedAt = performance.timeOrigin + performance.now()
      let heldAt = 0
      await pair(0, () => {
        heldAt = performance.timeOrigin + performance.now()
      })
      task.turns++
      task.atMs = performance.now() - start
      if (!wantsTimes) continue
      times.push([askedAt, heldAt])
      if (times.length === 1 && turns === 'Infinity') process.send('begun')
    }
  }),
)
process.send(report())
await close()
process.disconnect()
