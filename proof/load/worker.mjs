// A process with some clients, which does what its parent asks for: see team.mjs.
import { tracingChannel } from 'node:diagnostics_channel'
import { readdirSync } from 'node:fs'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'

/** The waiters of `queue`, until `served` was asked for. */
let waiters = []
let clients = []

const tasks = { open, close, sample, cycle, queue, served, arrive, keep }

process.on('message', async ({ id, name, task }) => {
  try {
    process.send({ id, result: await tasks[name](task) })
    if (name === 'close') process.disconnect()
  } catch (error) {
    process.send({ id, error: error.stack })
  }
})
process.once('disconnect', () => process.exit())

async function open({ url, clients: count, options }) {
  clients = await Promise.all(Array.from({ length: count }, () => Holdfast.open(url, options)))
}

async function close() {
  await Promise.all(clients.map((locks) => locks.close()))
}

/** What the process has in use. */
async function sample() {
  globalThis.gc()
  await turn()
  globalThis.gc()
  const { rss, heapUsed } = process.memoryUsage()
  return { heapMb: heapUsed / 2 ** 20, rssMb: rss / 2 ** 20, files: readdirSync('/proc/self/fd').length }
}

/** Takes any of many locks and gives it back, again and again. */
async function cycle({ resources, loops, ms }) {
  const until = performance.now() + ms
  const fences = new Map()
  const done = { pairs: 0, fallen: 0 }
  const loop = async (locks) => {
    while (performance.now() < until) {
      const name = `resource-${Math.floor(Math.random() * resources)}`
      await locks.mutex(name).run(({ fence }) => {
        if (fence <= (fences.get(name) ?? 0)) done.fallen++
        fences.set(name, fence)
      })
      done.pairs++
    }
  }
  await Promise.all(clients.flatMap((locks) => Array.from({ length: loops }, () => loop(locks))))
  return done
}

/** Lets so many of each client wait for one lock. */
function queue({ name, each }) {
  const take = async (locks) => {
    const hold = await locks.mutex(name).acquire()
    const grant = [hold.fence, Number(process.hrtime.bigint() / 1000n)]
    await hold.release()
    return grant
  }
  waiters = clients.flatMap((locks) => Array.from({ length: each }, () => take(locks)))
  // A failure is told by `served`.
  for (const waiter of waiters) waiter.catch(() => {})
}

/** The fence and the time of each, when all have had their turn. */
async function served() {
  const grants = await Promise.all(waiters)
  waiters = []
  return grants
}

/** Callers who come at a fixed rate, whether those before them were served or not. */
async function arrive({ name, perSecond, ms, holdMs, options }) {
  const outcomes = []
  const come = async (locks) => {
    const at = performance.now()
    const note = (what) => outcomes.push([what, performance.now() - at])
    try {
      const hold = await locks.mutex(name).acquire(options)
      note('served')
      await wait(holdMs)
      await hold.release()
    } catch (error) {
      note(error.code ?? String(error))
    }
  }
  const begin = performance.now()
  const coming = []
  for (;;) {
    const passed = performance.now() - begin
    if (passed >= ms) break
    while (coming.length < (passed / 1000) * perSecond)
      coming.push(come(clients[coming.length % clients.length]))
    await wait(1)
  }
  const endedAt = performance.now()
  await Promise.all(coming)
  return { outcomes, drainMs: performance.now() - endedAt }
}

/** Keeps many holds until they have been renewed so often, in all. */
async function keep({ count, lease, renewals }) {
  const done = { held: 0, lost: 0, refused: 0, renewals: 0, samples: [] }
  const counter = {
    asyncEnd({ beats }) {
      done.renewals += beats
    },
  }
  const channel = tracingChannel('holdfast:pulse')
  const asking = Array.from({ length: count }, (_, index) =>
    clients[index % clients.length].mutex(`kept-${process.pid}-${index}`).acquire({ lease }),
  )
  for (const result of await Promise.allSettled(asking)) {
    if (result.status === 'rejected') done.refused++
    else {
      done.held++
      result.value.signal.addEventListener('abort', () => done.lost++)
    }
  }
  channel.subscribe(counter)
  const begin = performance.now()
  for (let part = 0; part <= 5; part++) {
    while (done.renewals < (renewals * part) / 5) await wait(50)
    done.samples.push(await sample())
  }
  channel.unsubscribe(counter)
  // What is released is not lost.
  const { lost } = done
  const seconds = (performance.now() - begin) / 1000
  await Promise.all(asking.map((each) => each.then((hold) => hold.release()).catch(() => {})))
  return { ...done, lost, seconds }
}
