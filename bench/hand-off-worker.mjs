// One process of a contended run on MySQL that tells when each hold began and ended, by the clock
// that all processes of a machine share.
import { Holdfast } from 'holdfast'
import { mysql } from 'holdfast/mysql'

const [url, tasks, turns] = process.argv.slice(2)
const locks = new Holdfast(mysql(url), { order: 'strict' })
await locks.mutex('warm-up').run(() => {})
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))

const holds = []
await Promise.all(
  Array.from({ length: Number(tasks) }, async () => {
    for (let turn = 0; turn < Number(turns); turn++) {
      const hold = await locks.mutex('hand-off').acquire()
      const at = nowMs()
      const releasing = hold.release()
      holds.push({ fence: hold.fence, at, left: at })
      await releasing
    }
  }),
)
process.send(holds)
await locks.close()
process.disconnect()

function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6
}
