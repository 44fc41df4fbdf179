// A process with a client of one version: `node worker.mjs ENTRY URL OPTIONS`. It uses what both versions
// export, and does what its parent tells it. See processes.ts.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

// First, so that a parent that dies meanwhile is noticed.
process.on('disconnect', () => process.exit(1))

const [entry = '', url = '', options = '{}'] = process.argv.slice(2)
const { Holdfast } = await import(pathToFileURL(entry).href)
const locks = await Holdfast.open(url, JSON.parse(options))

const KINDS = {
  mutex: (name) => locks.mutex(name),
  read: (name) => locks.readWrite(name).read,
  write: (name) => locks.readWrite(name).write,
  semaphore: (name) => locks.semaphore(name, 3),
}
const holds = []
const leaderships = []
/** By name, what it was told to wait for, as it came: the fences, or why not. */
const grants = new Map()
let hammered = 0

function kept(hold) {
  return { hold: holds.push(hold) - 1, fence: hold.fence }
}

const api = {
  async acquire(kind, name, options = {}) {
    return kept(await KINDS[kind](name).acquire(options))
  },
  async tryAcquire(kind, name) {
    const hold = await KINDS[kind](name).tryAcquire()
    return hold && kept(hold)
  },
  release: (number) => holds[number].release(),
  isValid: async (number) => holds[number].isValid && !holds[number].signal.aborted,

  /** Waits for it in the background, and gives it back at once. */
  async queue(kind, name, options = {}) {
    const had = grants.get(name) ?? []
    grants.set(name, had)
    KINDS[kind](name)
      .run((hold) => had.push(hold.fence), options)
      .catch(({ message }) => had.push(message))
  },
  grants: async (name) => grants.get(name) ?? [],
  async line(name) {
    for await (const { holders, waiters } of locks.inspect({ name }))
      return { holders: holders.length, waiters: waiters.length }
    return { holders: 0, waiters: 0 }
  },

  /** Wrong at once if two do it at the same time. */
  async count(name, counter, ledger, tasks, times) {
    const task = async () => {
      for (let time = 0; time < times; time++)
        await locks.mutex(name).run(async (hold) => {
          const value = Number(readFileSync(counter, 'utf8'))
          await setImmediate()
          writeFileSync(counter, String(value + 1))
          appendFileSync(ledger, `${hold.fence}\n`)
        })
    }
    await Promise.all(Array.from({ length: tasks }, task))
  },
  /** Takes the lock again and again, until it is killed. */
  async hammer(name, lease) {
    const turn = async () => {
      await delay(1)
      hammered += 1
    }
    const forever = async () => {
      for (;;) await locks.mutex(name).run(turn, { lease })
    }
    void forever()
  },
  hammered: async () => hammered,

  async campaign(name, id, options = {}) {
    const leadership = await locks.election(name).campaign({ id, ...options })
    return { leadership: leaderships.push(leadership) - 1, term: leadership.term }
  },
  resign: (number) => leaderships[number].resign(),
  leader: async (name) => (await locks.election(name).leader())?.id ?? null,
  once: async (name, options) => (await locks.once(name, options, () => {})).ran,

  export: async (number) => holds[number].export(),
  adopt: async (text) => kept(await locks.adopt(text)),
  async breakHold(name) {
    await locks.breakHold(name)
  },
  countDown: (name, total) => locks.latch(name, total).countDown(),
  waitForLatch: (name, total) => locks.latch(name, total).wait(),
  meet: (name, parties) => locks.barrier(name, parties).meet(),
}

process.on('message', async ({ call, method, args }) => {
  try {
    process.send({ call, value: (await api[method](...args)) ?? null })
  } catch (error) {
    process.send({ call, error: `${error.code ?? ''} ${error.stack}` })
  }
})
process.send({ call: 0, value: null })
