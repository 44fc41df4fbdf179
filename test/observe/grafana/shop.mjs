// A process of a shop that is busy until it is killed, with its metrics for Prometheus. Sends its
// port when it serves them. Told to stop, it stops itself (SIGSTOP) as soon as it holds the stock.
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { redisGuard } from 'holdfast/fence'
import { prometheus } from 'holdfast/prometheus'
import { Redis } from 'ioredis'

const STOCK_LEASE_MS = 1000
const [, , url = '', index = '0'] = process.argv
const metrics = prometheus({ resource: (name) => name.replace(/\d+/g, '*') })
const server = createServer((_request, response) => {
  response.setHeader('content-type', metrics.contentType).end(metrics.text())
})
const locks = await Holdfast.open(url, { space: 'shop', wait: '5s', storeTimeout: 1000 })
const client = new Redis(url)
client.on('error', () => {})
const guard = redisGuard(client)

process.once('disconnect', () => process.exit())
let shallStop = false
process.on('message', () => {
  shallStop = true
})

/** The same numbers in each run. */
let seed = Number(index) * 7919 + 17
function random() {
  seed = (seed * 48271) % 2147483647
  return seed / 2147483647
}

/** Customers come in waves: 0 is quiet, 1 is the rush. */
const begin = performance.now()
const rush = () => (1 - Math.cos(((performance.now() - begin) / 45_000) * 2 * Math.PI)) / 2

/** Pauses for about so long; in the rush for a third of it. */
const idle = (ms) => pause(ms * (0.5 + random()) * (1 - 0.67 * rush()))
const work = (ms) => pause(ms * (0.5 + random()))

const TASKS = [
  async () => {
    await idle(500)
    await locks.mutex(`order:${Math.ceil(random() * 6)}`).run(() => work(60))
  },
  async () => {
    await idle(700)
    await locks.mutex('stock').run(
      async (hold) => {
        await work(90)
        if (shallStop) {
          shallStop = false
          process.send?.('stops', () => process.kill(process.pid, 'SIGSTOP'))
          await pause(10)
        }
        // Whether or not the hold is still valid: the guard knows better.
        await guard.set(hold, 'stock', '42')
      },
      { wait: '1s', lease: STOCK_LEASE_MS },
    )
  },
  async () => {
    await idle(900)
    await locks.semaphore('gpu', 3).run(() => work(350), { wait: '3s' })
  },
  async () => {
    await idle(250)
    await locks.readWrite('catalogue').read.run(() => work(40))
  },
  async () => {
    await idle(2500)
    await locks.readWrite('catalogue').write.run(() => work(150))
  },
  async () => {
    await idle(1500)
    const hold = await locks.mutex('invoice').tryAcquire()
    await work(300)
    await hold?.release()
  },
]

/** Timeouts, losses and refusals are what the dashboard is to show. */
async function again(task) {
  for (;;) await task().catch(() => {})
}
for (const task of [...TASKS, ...TASKS]) again(task)

server.listen(0, '127.0.0.1', () => process.send?.(server.address().port))
