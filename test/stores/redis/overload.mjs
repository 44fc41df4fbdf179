// Many callers for one lock with a bound. Begins with a line of input; tells of each that was refused and how long that took, then how
// many were served. With 'again', a refused caller comes back after a pause until it is served.
import { Holdfast } from 'holdfast'

const [url = '', order = 'strict', callers = '1', maxWaiters = '1', how = 'once'] = process.argv.slice(2)
const tell = (message) => console.log(JSON.stringify(message))
const locks = await Holdfast.open(url, { order, maxWaiters: Number(maxWaiters) })
let served = 0

async function call() {
  for (;;) {
    const askedAt = performance.now()
    try {
      const hold = await locks.mutex('door').acquire({ lease: '1m' })
      served++
      await new Promise(setImmediate)
      await hold.release()
      return
    } catch (error) {
      if (error.code !== 'LINE_FULL') throw error
      tell({ type: 'refused', ms: performance.now() - askedAt })
      if (how === 'once') return
      await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 800))
    }
  }
}

tell({ type: 'ready' })
await new Promise((resolve) => process.stdin.once('data', resolve))
await Promise.all(Array.from({ length: Number(callers) }, call))
tell({ type: 'served', served })
await locks.close()
process.stdin.destroy()
