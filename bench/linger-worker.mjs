// The other process of the benchmark of lingering leases: takes a lock when it is told to, and
// tells when it asked and had it.
import { Holdfast } from 'holdfast'
import { redis } from 'holdfast/redis'
import { Redis } from 'ioredis'

const [url] = process.argv.slice(2)
const client = new Redis(url)
const locks = new Holdfast(redis(client))
await locks.mutex('warm-up').run(() => {})
process.on('message', async ({ ping, acquire, end }) => {
  if (ping) {
    const start = nowMs()
    await client.ping()
    process.send({ ms: nowMs() - start })
  } else if (acquire) {
    const askedAt = nowMs()
    const hold = await locks.mutex(acquire).acquire()
    const grantedAt = nowMs()
    await hold.release()
    process.send({ askedAt, grantedAt })
  } else if (end) {
    await locks.close()
    client.disconnect()
    process.disconnect()
  }
})
process.send('ready')

function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6
}
