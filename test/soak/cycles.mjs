// Acquires and releases again and again, waiters included, and prints how much memory is in use
// along the way. Ends by itself without close(): nothing of the library may keep a finished process
// alive.
import { Holdfast } from 'holdfast'

const [url, cycles] = process.argv.slice(2)
const locks = await Holdfast.open(url)

async function cycle(number) {
  // Two tasks, so that half of the holds are handed off; mostly names that were never used before
  // and never will be again.
  const mutex = locks.mutex(number % 4 === 0 ? 'hot' : `cold-${number}`)
  await Promise.all([
    mutex.run(async (hold) => hold.signal),
    mutex.run(async () => {}, { wait: '1m', signal: AbortSignal.timeout(60_000) }),
  ])
}

for (let done = 0; done <= Number(cycles); done++) {
  if (done % (Number(cycles) / 5) === 0) {
    globalThis.gc()
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc()
    const { rss, heapUsed } = process.memoryUsage()
    console.log(JSON.stringify({ done, rssMb: rss / 2 ** 20, heapMb: heapUsed / 2 ** 20 }))
  }
  await cycle(done)
}
