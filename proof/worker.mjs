// A process that takes locks again and again: `node worker.mjs JSON`, see `#fork` in crowd.ts.
// It reads and writes a register under exclusive holds: under each, or under some where a lock has
// several tasks. The registers are in the parent, behind a guard. After a hold was lost or released,
// it also tries to write: the guard has to refuse that. It sends the records of history.ts, except
// for those of registers. It ends when told to.
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { membersOf } from '../test/stores/quorum/members.mjs'
import { now } from './own-clock.mjs'

const task = JSON.parse(process.argv[2] ?? '{}')
// Of this version, or of the previous one.
const { Holdfast } = await import(task.entry)
const { worker, leaseMs, askedLeaseMs, loops } = task
/** Half of the quick holds end at once. */
const LONGEST_QUICK_MS = 8
/** A long one is renewed several times, and outlasts most faults that strike it when it is new. */
const LONG_LEASES = [2, 3]
const SEND_MS = 30
/** How often a write is tried after a release. */
const LATE_WRITES = 0.03
const LATE_BY_MS = 30
/** A lost holder tries to write until it is refused, but not for ever. */
const STALE_TRIES = 40
/** Of the holds of a lock with several tasks: these use the register, and these last a moment. */
const REGISTER_SHARE = 0.01
const TURN_SHARE = 0.2
const LONGEST_PAUSE_MS = 50
const EXPECTED = ['STORE_UNAVAILABLE', 'HOLD_LOST']
/** A probe takes a lock of its own so often, and must be answered in time. */
const PROBE_EVERY_MS = 100
const PROBE_TIMEOUT_MS = 1000
const PROBE_GRACE_MS = 500
const TICK_MS = 20
const USUAL_US = 5000

let isOver = false
let endedAt = 0
/** One for each task: a signal with hundreds of listeners is slow. */
const endings = []
let lastHold = 0
let lastAsked = 0
const asked = new Map()
/** The holds that are not over, with the last moment at which each was seen to be valid. */
const held = new Map()
let news = nothing()
/** How long this process has stood still. */
let lateUs = 0
process.on('message', (message) => {
  if (message === 'end') {
    isOver = true
    endedAt = now()
    for (const ending of endings) ending.abort()
  } else asked.get(message.ask)?.(message)
})
// Also where the run was ended from outside.
process.once('disconnect', () => process.exit())

const clients = await Promise.all(Array.from({ length: task.clients }, () => open()))
const sending = setInterval(send, SEND_MS)
process.send({ isReady: true, ...(worker === 1 && { server: await serverOf(clients[0]) }) })
const probing = probe()
await Promise.all(clients.flatMap((client, index) => loops.flatMap((loop) => tasksOf(client, index, loop))))
await probing
clearInterval(sending)
await Promise.all(clients.map((client) => client.close({ drain: 0 })))
process.send({ ...news, seen: [] }, () => process.disconnect())

function nothing() {
  return { records: [], losses: [], unavailable: [], failures: [], odd: [] }
}

/** The server may be down when this process starts. */
async function open(storeTimeout = '5s') {
  for (;;) {
    const [from, lateBefore] = [now(), lateUs]
    try {
      const options = { storeTimeout }
      if (!task.members) return await Holdfast.open(task.url, options)
      const { quorum } = await partOf('quorum')
      const members = membersOf(task.members, await storesOf(task.members), 3)
      return new Holdfast(quorum(members, task.quorum), options)
    } catch (error) {
      note(error, from, lateBefore)
      await wait(20)
    }
  }
}

/** What the store says about its version. */
async function serverOf(client) {
  const findings = await client.check()
  const versions = findings.flatMap(({ text }) => text.match(/\b[A-Z]\w+ \d+(\.\d+)+/i)?.[0] ?? [])
  return [...new Set(versions)].join(', ')
}

/** Of the same version as `entry`, which it lies beside. */
function partOf(name) {
  return import(new URL(`${name}.mjs`, task.entry).href)
}

/** Only those that are members: a process that loads less is back sooner after a restart. */
async function storesOf(urls) {
  const names = new Set(urls.map((url) => url.slice(0, url.indexOf(':'))))
  const modules = await Promise.all([...names].map(partOf))
  return Object.assign({}, ...modules)
}

function send(question) {
  const { records, failures, odd, unavailable } = news
  const count = records.length + failures.length + odd.length + unavailable.length
  if (!question && count + held.size === 0) return
  process.send({ ...news, seen: [...held], ...(question && { question }) })
  news = nothing()
}

/** A store that is down must be told in time, and as that. */
async function probe() {
  const ticking = tick()
  const client = await open(PROBE_TIMEOUT_MS)
  const lock = client.mutex(`probe-${worker}`)
  while (!isOver) {
    const [from, lateBefore] = [now(), lateUs]
    try {
      const hold = await lock.tryAcquire({ lease: askedLeaseMs })
      await hold?.release()
    } catch (error) {
      if (error.code === 'STORE_UNAVAILABLE') news.unavailable.push(since(from, lateBefore))
      else note(error, from, lateBefore)
    }
    const tookUs = now() - from
    // After a pause, its end may come before the tick that notices the pause.
    await wait(PROBE_EVERY_MS)
    const ms = (tookUs - (lateUs - lateBefore)) / 1000
    // A try and a release.
    if (ms > 2 * PROBE_TIMEOUT_MS + PROBE_GRACE_MS)
      news.odd.push(`worker ${worker}: a probe took ${Math.round(ms)} ms`)
  }
  await client.close({ drain: 0 })
  await ticking
}

async function tick() {
  for (let at = now(); !isOver; ) {
    await wait(TICK_MS)
    const before = at
    at = now()
    const late = at - before - TICK_MS * 1000
    // A timer is a little late on an idle machine, too.
    if (late > USUAL_US) lateUs += late
  }
}

/** What began then, when the process had stood still for so long in all, and ends now. */
function since(from, lateBefore) {
  return { from, at: now(), lateUs: lateUs - lateBefore }
}

/** `from`: when the call began. */
function note(error, from, lateBefore) {
  if (isOver && error.code === 'ABORTED') return
  if (EXPECTED.includes(error.code)) news.failures.push(since(from, lateBefore))
  else news.odd.push(`worker ${worker}: ${error.stack ?? error}`)
}

function tasksOf(client, index, loop) {
  return Array.from({ length: loop.tasks ?? 1 }, (_, number) =>
    take(client, { client: index, task: number }, loop),
  )
}

async function take(client, who, loop) {
  const lock = lockOf(client, loop)
  const ending = new AbortController()
  endings.push(ending)
  const asking = { lease: askedLeaseMs, signal: ending.signal }
  while (!isOver) {
    const [from, lateBefore] = [now(), lateUs]
    try {
      const permits = loop.kind === 'semaphore' ? 1 + Math.floor(Math.random() * 2) : null
      const asked = { ...asking, ...(permits && { permits }) }
      const hold = await lock.acquire(asked).catch((error) => {
        if (error.code === 'ABORTED') waited(loop, permits, from)
        throw error
      })
      await work(hold, who, loop, permits, from)
      if (loop.tasks) await wait(Math.random() * LONGEST_PAUSE_MS)
    } catch (error) {
      note(error, from, lateBefore)
      await wait(10)
    }
  }
}

function lockOf(client, { kind, lock, capacity }) {
  if (kind === 'semaphore') return client.semaphore(lock, capacity)
  if (kind === 'mutex') return client.mutex(lock)
  return client.readWrite(lock)[kind]
}

/** The run was over before this request was granted. */
function waited({ kind, lock, capacity }, permits, from) {
  const count = permits && { permits, capacity }
  const hold = `${worker}/${++lastHold}`
  const unanswered = { to: null, fence: null, waitedUntil: endedAt }
  news.records.push({ type: 'acquire', lock, kind, ...count, hold, from, ...unanswered })
}

async function work(hold, who, { kind, lock, capacity, isLong, tasks }, permits, from) {
  const id = `${worker}/${++lastHold}`
  const [to, lateBefore] = [now(), lateUs]
  // Without a look at which it was valid, nothing is known but that it was granted.
  held.set(id, from)
  const look = () => {
    // In this order: a pause in between makes the hold end earlier.
    const at = now()
    if (!hold.isValid) return false
    held.set(id, at)
    return true
  }
  look()
  const { fence } = hold
  const count = permits && { permits, capacity }
  news.records.push({ type: 'acquire', lock, kind, ...count, hold: id, ...who, from, to, fence })
  const write = register({ lock, hold: id, fence, kind })
  if (!tasks || Math.random() < REGISTER_SHARE) {
    await write(null)
    await stay(isLong, look)
    // Valid or not: the guard decides.
    await write('last')
  } else if (Math.random() < TURN_SHARE) await turn()
  const isValid = look()
  const isReleased = isValid ? await released(hold) : false
  end(id, isReleased ? now() : null)
  if (isReleased === false) news.losses.push(since(to, lateBefore))
  if (!isReleased) {
    const [late] = await Promise.allSettled([hold.release(), writeWhenLost(write)])
    if (!isValid && late.value) news.odd.push(`worker ${worker}: ${id} was lost, and its release gave true`)
    return
  }
  if (Math.random() > LATE_WRITES) return
  await wait(LATE_BY_MS)
  await write('late')
}

/** false: it was lost; null: nobody knows. */
async function released(hold) {
  const [from, lateBefore] = [now(), lateUs]
  try {
    return await hold.release()
  } catch (error) {
    note(error, from, lateBefore)
    return null
  }
}

function end(hold, to) {
  news.records.push({ type: 'end', hold, from: held.get(hold), to })
  held.delete(hold)
}

async function stay(isLong, look) {
  const [leastMs, mostMs] = isLong ? LONG_LEASES.map((leases) => leases * leaseMs) : [0, LONGEST_QUICK_MS]
  const isShort = !isLong && Math.random() < 0.5
  const until = isShort ? 0 : now() + (leastMs + Math.random() * (mostMs - leastMs)) * 1000
  do await (isShort ? turn() : wait(1))
  while (look() && now() < until && !isOver)
}

async function writeWhenLost(write) {
  for (let attempt = 0; attempt < STALE_TRIES && !isOver; attempt++) {
    const { isAccepted } = await write(`lost-${attempt}`)
    if (!isAccepted) return
    await wait(leaseMs / 20)
  }
}

/** Asks the parent to write the register of the lock, or to read it: null. */
function register({ lock, hold, fence, kind }) {
  if (kind === 'read' || kind === 'semaphore') return async () => ({ isAccepted: false })
  return (name) =>
    new Promise((resolve) => {
      const ask = ++lastAsked
      asked.set(ask, (answer) => {
        asked.delete(ask)
        resolve(answer)
      })
      const value = name === null ? null : `${hold}/${name}`
      send({ ask, register: lock, hold, fence, value, from: now() })
    })
}
