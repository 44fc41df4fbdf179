// A process (or worker thread) that uses the built SQLite store, for the tests beside it.
// node child.mjs MODE PATH …; it talks over the IPC channel.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { sqlite } from '../../../dist/stores/sqlite/index.js'

const EXCLUSIVE = 2 ** 30
const [mode, path, ...rest] = workerData ?? process.argv.slice(2)
const wakers = new Map()
const client = sqlite(path).connect({
  id: randomUUID(),
  space: 'test',
  push: (news) => wakers.get(news.id)?.(news),
})

const send = (message) => (parentPort ? parentPort.postMessage(message) : process.send(message))
const channel = parentPort ?? process
const received = () => once(channel, 'message')
// A channel that somebody listens to keeps the process alive, as the work of a real one would.
if (mode !== 'idle') channel.on('message', () => {})
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

function request(resource, id, leaseMs) {
  const permits = { permits: EXCLUSIVE, capacity: EXCLUSIVE, block: 1, floor: 0, maxHoldMs: null }
  return { resource, id, ...permits, leaseMs, presenceMs: leaseMs, queue: true, info: `pid ${process.pid}` }
}

/** Claims, waits until granted, asking as the engine does, and gives the fence and the moment up to which it is valid. */
async function acquire(resource, id, leaseMs) {
  for (;;) {
    const sentAt = nowMs()
    const pushed = new Promise((resolve) => wakers.set(id, resolve))
    const reply = await client.claim(request(resource, id, leaseMs))
    if (reply.status === 'granted') return { fence: reply.fence, validUntil: sentAt + leaseMs }
    let news
    while (news === undefined) {
      let timer
      const askIn = new Promise((resolve) => {
        timer = setTimeout(resolve, 100)
      })
      await Promise.race([pushed, askIn])
      clearTimeout(timer)
      const askedAt = nowMs()
      const [now] = await client.pulse([{ resource, id, leaseMs, presenceMs: leaseMs }])
      if (now.status === 'held') return { fence: now.fence, validUntil: askedAt + leaseMs }
      if (now.status === 'gone') news = now
    }
    id = randomUUID()
  }
}

const modes = {
  /** Opens the file, and leaves. */
  async open() {
    await client.pulse([])
    send('opened')
  },

  /** Tells how an attempt to claim fails. */
  async fail() {
    const error = await client.claim(request('r', randomUUID(), 1000)).then(
      () => null,
      ({ code, message, retryable }) => ({ code, message, retryable }),
    )
    send(error)
  },

  /** Takes RESOURCE again and again until told to stop; under the hold it writes its fence to LOG. */
  async hammer() {
    const [resource, log, leaseMs] = rest
    let isRunning = true
    received().then(() => {
      isRunning = false
    })
    let pairs = 0
    let longestMs = 0
    while (isRunning) {
      const id = randomUUID()
      const startedAt = nowMs()
      const { fence, validUntil } = await acquire(resource, id, Number(leaseMs))
      longestMs = Math.max(longestMs, nowMs() - startedAt)
      if (log && nowMs() < validUntil - Number(leaseMs) / 2) appendFileSync(log, `${fence}\n`)
      await client.release(resource, id)
      pairs += 1
      if (pairs === 1) send('ready')
    }
    send({ pairs, longestMs })
  },

  /** For each message: claims RESOURCE, says that it waits, and says when the push came. */
  async waiter() {
    const [resource] = rest
    for (;;) {
      const id = randomUUID()
      const pushed = new Promise((resolve) => wakers.set(id, resolve))
      const { status } = await client.claim(request(resource, id, 30_000))
      send(status)
      await pushed
      send(nowMs())
      await client.release(resource, id)
      const [message] = await received()
      if (message === 'stop') return
    }
  },

  /** Waits in line, with a wire and a watch, and has nothing else to do: the process should end by itself. */
  async idle() {
    const { status } = await client.claim(request(rest[0], randomUUID(), 30_000))
    await client.read('key', true)
    send(status)
    process.disconnect()
  },
}

await modes[mode]()
if (mode !== 'idle') {
  await client.close()
  if (parentPort) parentPort.close()
  else process.disconnect()
}
