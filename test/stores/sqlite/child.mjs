// A process (or worker thread) that uses the built SQLite store, for the tests beside it.
// node child.mjs MODE PATH …, or another runtime: see scripts/runtimes.mjs. It talks over the IPC channel.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { machineClock } from '../../../dist/cjs/stores/sqlite/machine-clock.js'
import { sqlite } from '../../../dist/import/sqlite.mjs'

const EXCLUSIVE = 2 ** 30
const [mode, path, ...rest] = workerData ?? process.argv.slice(2)
const wakers = new Map()
const store = sqlite(path).connect({
  id: randomUUID(),
  space: 'test',
  push: (news) => wakers.get(news.id)?.(news),
})
// As the engine does: a disk that stands still for some seconds makes the store give up, and the call is made again.
const client = {
  claim: (request) => patiently(() => store.claim(request)),
  pulse: (beats) => patiently(() => store.pulse(beats)),
  release: (resource, id) => patiently(() => store.release(resource, id)),
  read: (key, watch) => patiently(() => store.read(key, watch)),
}

async function patiently(call) {
  const deadline = performance.now() + 30_000
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!error.retryable || performance.now() > deadline) throw error
    }
  }
}

let sent = Promise.resolve()
function send(message) {
  if (parentPort) parentPort.postMessage(message)
  else sent = new Promise((resolve) => process.send(message, resolve))
}
/** Deno loses what was not yet sent. */
async function disconnect() {
  await sent
  process.disconnect()
}
const channel = parentPort ?? process
const received = () => once(channel, 'message')
// A channel that somebody listens to keeps the process alive, as the work of a real one would.
if (mode !== 'idle') channel.on('message', () => {})
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

/** Gives a function that tells for how long this process has stood still since then, in all: the machine had no time for it. */
function standsStill() {
  const tickMs = 10
  let [totalMs, tickedAt] = [0, nowMs()]
  const tick = () => {
    const at = nowMs()
    totalMs += Math.max(0, at - tickedAt - tickMs)
    tickedAt = at
  }
  setInterval(tick, tickMs).unref()
  return () => {
    tick()
    return totalMs
  }
}

function request(resource, id, leaseMs) {
  const permits = { permits: EXCLUSIVE, capacity: EXCLUSIVE, block: 1, floor: 0, maxHoldMs: null }
  return { resource, id, ...permits, leaseMs, presenceMs: leaseMs, mode: 'queue', info: `pid ${process.pid}` }
}

/** Claims, waits until granted, asking as the engine does, and gives its id, the fence and the moment up to which it is valid. */
async function acquire(resource, leaseMs) {
  for (;;) {
    const id = randomUUID()
    const sentAt = nowMs()
    const pushed = new Promise((resolve) => wakers.set(id, resolve))
    const reply = await client.claim(request(resource, id, leaseMs))
    if (reply.status === 'granted') return { id, fence: reply.fence, validUntil: sentAt + leaseMs }
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
      if (now.status === 'held') return { id, fence: now.fence, validUntil: askedAt + leaseMs }
      if (now.status === 'gone') news = now
    }
  }
}

const modes = {
  /** Opens the file, and leaves. */
  async open() {
    await client.pulse([])
    send('opened')
  },

  /** Makes the calls that it is told, [METHOD, …ARGUMENTS], and tells each result, until told to `stop`. */
  async calls() {
    send('ready')
    for (;;) {
      const [message] = await received()
      if (message === 'stop') return
      const [method, ...args] = message
      send(await client[method](...args))
    }
  },

  /** For each message: tells what the clock of the store says. */
  async clock() {
    send('ready')
    for (;;) {
      const [message] = await received()
      if (message === 'stop') return
      send(machineClock()())
    }
  },

  /** Tells how an attempt to claim fails. */
  async fail() {
    const error = await store.claim(request('r', randomUUID(), 1000)).then(
      () => null,
      ({ code, message, retryable }) => ({ code, message, retryable }),
    )
    send(error)
  },

  /**
   * Takes RESOURCE again and again until told to `stop`; under the hold it writes its fence to LOG, and if it was overtaken by the end of
   * its lease on the way, that it was. Says `ready` after its first turn, and counts anew when told to `count`: others may not have been
   * there before. Says `enough` after ENOUGH turns from then.
   */
  async hammer() {
    const [resource, log, leaseMs, enough] = rest
    let isRunning = true
    const stillMs = standsStill()
    const newTally = () => ({ pairs: 0, longestMs: 0, from: nowMs(), stillFrom: stillMs() })
    let tally = newTally()
    channel.on('message', (message) => {
      if (message === 'count') tally = { ...newTally(), isCounted: true }
      else isRunning = false
    })
    while (isRunning) {
      const startedAt = nowMs()
      const { id, fence, validUntil } = await acquire(resource, Number(leaseMs))
      tally.longestMs = Math.max(tally.longestMs, nowMs() - startedAt)
      if (log && nowMs() < validUntil - Number(leaseMs) / 2) {
        appendFileSync(log, `${fence}\n`)
        if (nowMs() >= validUntil) appendFileSync(log, `late ${fence}\n`)
      }
      await client.release(resource, id)
      tally.pairs += 1
      if (tally.pairs === 1 && !tally.isCounted) send('ready')
      if (tally.pairs === Number(enough) && tally.isCounted) send('enough')
    }
    const { pairs, longestMs, from, stillFrom } = tally
    send({ pairs, longestMs, activeMs: nowMs() - from - (stillMs() - stillFrom) })
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
      send(machineClock()())
      await client.release(resource, id)
      const [message] = await received()
      if (message === 'stop') return
    }
  },

  /** Waits in line, with a socket and a watch, and has nothing else to do: the process should end by itself. */
  async idle() {
    const { status } = await client.claim(request(rest[0], randomUUID(), 30_000))
    await client.read('key', true)
    send(status)
    await disconnect()
  },
}

await modes[mode]()
if (mode !== 'idle') {
  await store.close()
  if (parentPort) parentPort.close()
  else await disconnect()
}
