// One process of a contended run: `tasks` loops on one lock, each `turns` times. Tells the parent when its turns are over.
import { contenders } from './contenders.mjs'

const [name, folder, tasks, turns] = process.argv.slice(2)
const { pair, close } = await contenders[name](folder)
await pair(1)
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))

const start = performance.now()
const finishedAt = await Promise.all(
  Array.from({ length: Number(tasks) }, async () => {
    for (let turn = 0; turn < Number(turns); turn++) await pair(0)
    return performance.now() - start
  }),
)
process.send(finishedAt)
await close()
process.disconnect()
