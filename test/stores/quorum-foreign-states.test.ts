import { afterEach, expect, it } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'

const opened: Holdfast[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close({ drain: 0 })))
})

function client(store: Store): Holdfast {
  const locks = new Holdfast(store)
  opened.push(locks)
  return locks
}

async function write(member: Store, key: string, value: string): Promise<void> {
  const connection = member.connect({ id: 'other', space: 'default', push: () => {} })
  await connection.write({ key, expect: null, value, retentionMs: null })
  await connection.close()
}

it('keeps a latch that a member has from a client without the quorum', async () => {
  const members = [memory(), memory(), memory()] as const
  await client(members[0]).latch('x', 3).countDown()
  const latch = client(quorum(members)).latch('x', 3)
  expect(await latch.countDown()).toBe(2)
  expect(await latch.count()).toBe(2)
  expect(await latch.countDown()).toBe(1)
  expect(await client(quorum(members)).latch('x', 3).count()).toBe(1)
})

it('starts work once, although a member has a start without the quorum', async () => {
  const members = [memory(), memory(), memory()] as const
  const times = { atLeast: '1m', atMost: '1m' } as const
  await client(members[0]).once('job', times, () => {})
  const locks = client(quorum(members))
  let runs = 0
  for (let time = 0; time < 3; time++) await locks.once('job', times, () => runs++)
  expect(runs).toBe(1)
})

it.each([
  'no JSON',
  '',
  'null',
  '7',
  '[]',
  '{"promised":null,"accepted":null,"version":null,"value":"{}","endsAt":null,"keptMs":null}',
  '{"promised":1.5,"accepted":1,"version":1,"value":"{}","endsAt":null,"keptMs":null}',
  '{"promised":1,"accepted":1,"version":1,"value":{},"endsAt":null,"keptMs":null}',
  '{"promised":1,"accepted":1,"version":1,"value":"{}","endsAt":"soon","keptMs":null}',
  '{"promised":1,"accepted":1,"version":1,"value":"{}","endsAt":null}',
])('counts a latch on the others where one member has the text %j', async (text) => {
  const members = [memory(), memory(), memory()] as const
  await write(members[1], 'latch:x', text)
  const locks = client(quorum(members))
  const latch = locks.latch('x', 3)
  expect(await latch.count()).toBe(3)
  expect(await latch.countDown()).toBe(2)
  expect(await latch.count()).toBe(2)
  expect((await locks.overview()).latches).toMatchObject([{ name: 'x', count: 2 }])
  // It has been written over: the member takes part in this state again.
  const [cell] = await states(members[1])
  expect(JSON.parse(cell ?? '')).toMatchObject({ value: expect.stringContaining('"count":2') })
})

async function states(member: Store): Promise<string[]> {
  const connection = member.connect({ id: 'other', space: 'default', push: () => {} })
  const found: string[] = []
  for await (const { value } of connection.states('latch:')) found.push(value)
  await connection.close()
  return found
}
