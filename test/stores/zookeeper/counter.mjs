// A service with Holdfast that counts under a lock it shares with others: `node counter.mjs HOSTS ROOT/RESOURCE FOLDER KIND TURNS`; as
// CuratorCounter.java.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { zookeeper } from 'holdfast/zookeeper'

const [hosts = '', path = '', folder = '', kind = '', turns = '0'] = process.argv.slice(2)
const [left, right] = [join(folder, 'left'), join(folder, 'right')]
const at = path.lastIndexOf('/')
const [root, resource] = [path.slice(0, at), path.slice(at + 1)]
const shared = kind === 'mutex' ? 'curator' : 'curator-read-write'
const locks = new Holdfast(zookeeper(hosts, { root, shared, sessionTimeout: '20s', tick: 200 }))
await locks.check()
process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
process.stdin.destroy()

for (let turn = 0; turn < Number(turns); turn++) {
  if (kind === 'mutex') await locks.mutex(resource).run(write)
  else if (turn % 2 === 0) await locks.readWrite(resource).write.run(write)
  else await locks.readWrite(resource).read.run(read)
}
await locks.close()

async function write() {
  const value = look()
  writeFileSync(left, String(value + 1))
  await wait(1)
  writeFileSync(right, String(value + 1))
}

async function read() {
  const before = look()
  await wait(1)
  if (look() !== before) throw new Error('written while it was read')
}

function look() {
  const [first, second] = [readFileSync(left, 'utf8'), readFileSync(right, 'utf8')]
  if (first !== second) throw new Error(`seen half written: ${first} and ${second}`)
  return Number(first)
}
