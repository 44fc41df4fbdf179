// A service with Holdfast that shares locks with peers, driven over standard input: see peer.ts for the lines. `node ours.mjs PORT`.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { plainKeyLock, redissonLock } from 'holdfast/redis'
import { Redis } from 'ioredis'

const client = new Redis(Number(process.argv[2]))
client.on('error', () => {})
const plain = plainKeyLock(client)
const redisson = redissonLock(client)
const KINDS = {
  plain: (name) => plain.mutex(name),
  mutex: (name) => redisson.mutex(name),
  fair: (name) => redisson.fair(name),
  fenced: (name) => redisson.fenced(name),
  read: (name) => redisson.readWrite(name).read,
  write: (name) => redisson.readWrite(name).write,
}
const holds = new Map()

const COMMANDS = {
  async lock(kind, name, lease) {
    holds.set(name, await KINDS[kind](name).acquire({ lease: Number(lease) }))
    return 'held'
  },
  async unlock(_kind, name) {
    return `released ${await holds.get(name).release()}`
  },
  async valid(name) {
    const hold = holds.get(name)
    return `${hold.isValid} ${hold.signal.aborted} ${hold.remainingMs > 0}`
  },
  async count(kind, name, lease, folder, turns) {
    for (let turn = 0; turn < Number(turns); turn++)
      await KINDS[kind](name).run(() => bump(folder), { lease: Number(lease) })
    return 'counted'
  },
}

async function bump(folder) {
  const [left, right] = [join(folder, 'left'), join(folder, 'right')]
  const [first, second] = [readFileSync(left, 'utf8'), readFileSync(right, 'utf8')]
  if (first !== second) throw new Error(`seen half written: ${first} and ${second}`)
  writeFileSync(left, String(Number(first) + 1))
  await wait(1)
  writeFileSync(right, String(Number(first) + 1))
}

const tasks = new Map()
console.log('0 ok ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [number, task, command, ...args] = line.split(' ')
  const answer = async () => {
    try {
      console.log(number, 'ok', await COMMANDS[command](...args))
    } catch (error) {
      console.log(number, 'error', error.code ?? '', error.message)
    }
  }
  tasks.set(task, (tasks.get(task) ?? Promise.resolve()).then(answer))
}
process.exit()
