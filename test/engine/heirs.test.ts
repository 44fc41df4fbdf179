import { expect, it } from 'vitest'
import type { Push, Store } from '../../src/contract/store.js'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import type { AcquireOptions, LockOrder } from '../../src/primitives/options.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LEASE_MS = 10_000

/**
 * Two clients that keep to the order of arrival: the one whose neighbours are looked at, and
 * another one.
 */
class Door {
  readonly world = new VirtualWorld({ seed: 1 })
  readonly #inner = memory({ env: this.world.env({ name: 'server' }) })
  readonly #looker = this.#inner.connect({ id: 'looker', space: 'default', push: () => {} })
  readonly store: InterceptedStore
  readonly #other: Holdfast
  readonly #locks: Holdfast

  constructor(capabilities: Partial<Store['capabilities']> = {}) {
    const inner: Store = {
      name: this.#inner.name,
      capabilities: { ...this.#inner.capabilities, ...capabilities },
      connect: (client) => this.#inner.connect(client),
    }
    this.store = new InterceptedStore(inner)
    this.#other = new Holdfast(inner, { env: this.world.env({ name: 'other' }) })
    this.#locks = new Holdfast(this.store, { env: this.world.env({ name: 'here' }) })
  }

  async ask(options: AcquireOptions = {}, order: LockOrder = 'strict'): Promise<{ held: Promise<Hold> }> {
    const held = this.#locks.mutex('door', { order }).acquire({ lease: LEASE_MS, ...options })
    await this.pass(1)
    return { held }
  }

  async askElsewhere(): Promise<{ held: Promise<Hold> }> {
    const held = this.#other.mutex('door', { order: 'strict' }).acquire({ lease: LEASE_MS })
    await this.pass(1)
    return { held }
  }

  async breakHold(): Promise<void> {
    await this.#other.breakHold('door')
  }

  pass(ms: number): Promise<void> {
    return this.world.run(this.world.timeMs + ms)
  }

  /** The store forgets everybody, as one without data after a restart. */
  async forget(): Promise<void> {
    for (const id of (await this.line()).reverse()) await this.#looker.release('door', id)
  }

  /** The ids in line, as the store has them. */
  async line(): Promise<string[]> {
    for await (const { claims } of this.#looker.inspect({ prefix: '', resource: 'door' }))
      return claims.map(({ id }) => id)
    return []
  }

  async close(): Promise<void> {
    this.store.heal()
    await this.world.until(Promise.all([this.#locks, this.#other].map((each) => each.close({ drain: 0 }))))
    expect(await this.line()).toEqual([])
  }
}

it('an heir has the hold in the place of the one before it, and gives its own place up', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two, last] = [await door.ask(), await door.ask(), await door.askElsewhere()]
  const [, first, , behind] = await door.line()
  await other.release()
  await (await one.held).release()
  expect((await two.held).isValid).toBe(true)
  expect(await door.line()).toEqual([first, behind])
  await door.pass(LEASE_MS)
  expect(door.store.calls.at(-1)).toMatchObject({ method: 'pulse', about: [{ id: first }] })
  await (await two.held).release()
  expect((await last.held).fence).toBeGreaterThan((await two.held).fence)
  await door.close()
})

const doings: Record<string, (hold: Hold) => Promise<unknown>> = {
  extended: (hold) => hold.extend(2 * LEASE_MS),
  exported: (hold) => hold.export(),
}
for (const [what, work] of Object.entries(doings))
  for (const when of ['after', 'before'])
    it(`a hold that was ${what} ${when} its heirs were named goes back to the store`, async () => {
      const door = new Door({ confirmHandOffs: true })
      const other = await (await door.askElsewhere()).held
      const [one, two] = [await door.ask(), await door.ask()]
      const [, , second] = await door.line()
      const late: (() => void)[] = []
      if (when === 'before') door.store.onPush = (_news: Push, deliver) => late.push(deliver)
      await other.release()
      // It finds its grant by itself.
      const hold = await door.world.until(one.held)
      await door.world.until(work(hold))
      for (const deliver of late) deliver()
      await door.world.until(hold.release())
      await door.world.until(two.held)
      expect(await door.line()).toEqual([second])
      await door.close()
    })

it('an heir with a maxHold of its own has it from the store, and holds no longer than that', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask({ maxHold: 2000 })]
  await other.release()
  await door.world.until((await one.held).release())
  expect((await two.held).remainingMs).toBeLessThanOrEqual(2000)
  await door.close()
})

/** The second one has the lock after the first, by the place that it stood in itself. */
async function expectOwnPlace(...terms: Parameters<Door['ask']>): Promise<void> {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask(...terms)]
  const [, , second] = await door.line()
  await other.release()
  await door.world.until((await one.held).release())
  await two.held
  expect(await door.line()).toEqual([second])
  await door.close()
}

it.each([{ label: 'another' }, { owner: 'somebody' }, { lease: 2 * LEASE_MS }])(
  'one who asks in other words has a hold of its own: %o',
  (words) => expectOwnPlace(words),
)

it('one who stands in line for its neighbours has its grant from the store, and ends its turn', () =>
  expectOwnPlace({}, 'cohort'))

it.each(['before', 'after'])(
  'those who were named with another grant, and are told of %s its own, are no heirs',
  async (when) => {
    const door = new Door({ confirmHandOffs: true })
    const other = await (await door.askElsewhere()).held
    const [one, between, two] = [await door.ask(), await door.askElsewhere(), await door.ask()]
    const [, id = '', , third = ''] = await door.line()
    // As if its place had been granted once, with that one right behind it, and had been lost
    // again.
    const tell = () =>
      door.store.tell({ type: 'granted', resource: 'door', id, fence: other.fence + 1, heirs: [third] })
    if (when === 'before') tell()
    await door.pass(10)
    await other.release()
    const hold = await door.world.until(one.held)
    if (when === 'after') tell()
    await door.world.until(hold.release())
    await (await door.world.until(between.held)).release()
    expect((await door.world.until(two.held)).fence).toBeGreaterThan((await between.held).fence)
    await door.close()
  },
)

it('an heir that holds by the store already is left alone', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask()]
  const [, first, second] = await door.line()
  await other.release()
  const hold = await one.held
  // Broken, and the word of it is lost.
  door.store.onPush = (news, deliver) => {
    if (!('id' in news) || news.id !== first) deliver()
  }
  await door.breakHold()
  const next = await two.held
  expect(await hold.release()).toBe(false)
  expect([next.isValid, await door.line()]).toEqual([true, [second]])
  await door.close()
})

it('where the store has forgotten the line, an heir learns so from giving its place up', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask()]
  await other.release()
  const hold = await one.held
  await door.forget()
  const newcomer = await (await door.askElsewhere()).held
  await door.world.until(hold.release())
  const heir = await two.held
  await door.pass(1)
  expect([heir.isValid, newcomer.isValid]).toEqual([false, true])
  await door.close()
})

it('an heir that has heard of its own grant, and asks for it, is left alone', async () => {
  const door = new Door({ confirmHandOffs: true })
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask()]
  const [, first, second] = await door.line()
  await other.release()
  const hold = await door.world.until(one.held)
  // Broken, and the word of it is lost, but not that of the next one's grant; which is asked about,
  // and not answered yet.
  door.store.onPush = (news, deliver) => {
    if (!('id' in news) || news.id !== first) deliver()
  }
  let answer: (() => void) | undefined
  door.store.around = async (call, go) => {
    if (call.method === 'pulse')
      await new Promise<void>((resolve) => {
        answer ??= resolve
      })
    return go()
  }
  await door.breakHold()
  await door.pass(1)
  const leaving = hold.release()
  await door.pass(1)
  expect(await door.line()).toEqual([second])
  door.store.heal()
  answer?.()
  expect(await door.world.until(leaving)).toBe(false)
  expect((await door.world.until(two.held)).isValid).toBe(true)
  await door.close()
})

it('who leaves does not wait for a silent store for longer than the hold was valid', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask({ lease: 1000 }), await door.ask({ lease: 1000 })]
  await other.release()
  const hold = await one.held
  door.store.hang()
  const before = door.world.timeMs
  expect(await door.world.until(hold.release())).toBe(true)
  expect(door.world.timeMs - before).toBeLessThanOrEqual(1000)
  expect((await two.held).isValid).toBe(false)
  door.store.heal()
  await door.pass(30_000)
  await door.close()
})

it('a hold that is about to end is not passed on', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const [one, two] = [await door.ask(), await door.ask()]
  const [, , second] = await door.line()
  await other.release()
  const hold = await one.held
  door.store.cut('pulse')
  await door.pass(LEASE_MS * 0.6)
  await hold.release()
  await two.held
  expect(await door.line()).toEqual([second])
  await door.close()
})

it('a late word of a grant gives nobody a fence that was given out', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const three = [await door.ask(), await door.ask(), await door.ask()]
  let word: (() => void) | undefined
  door.store.onPush = (_news, deliver) => {
    word ??= deliver
    deliver()
  }
  await other.release()
  const fences = []
  for (const { held } of three) {
    const hold = await held
    fences.push(hold.fence)
    word?.()
    await door.world.until(hold.release())
  }
  expect(new Set(fences).size).toBe(3)
  expect(fences).toEqual([...fences].sort((a, b) => a - b))
  await door.close()
})

it('no more than sixteen are named at a time', async () => {
  const door = new Door()
  const other = await (await door.askElsewhere()).held
  const all = []
  for (let n = 0; n < 20; n++) all.push(await door.ask())
  const named: number[] = []
  door.store.onPush = (news, deliver) => {
    if (news.type === 'granted') named.push(news.heirs?.length ?? 0)
    deliver()
  }
  await other.release()
  for (const { held } of all) await door.world.until((await door.world.until(held)).release())
  expect(named).toEqual([16, 2])
  await door.close()
})

it.each([1, 2])('nobody is named where there is room for %i', async (capacity) => {
  const told: Push[] = []
  const connection = memory().connect({ id: 'c', space: 'default', push: (news) => told.push(news) })
  const ask = (id: string) => connection.claim(claimOf('room', id, { permits: 1, capacity: 1 }))
  await ask('1')
  await connection.resize('room', 1, capacity)
  for (const id of ['2', '3', '4']) await ask(id)
  await connection.release('room', '1')
  const id = String(1 + capacity)
  expect(told).toEqual([{ type: 'granted', resource: 'room', id, fence: expect.any(Number) }])
  await connection.close()
})

it('nobody is named from one on who tells something else of itself', async () => {
  const told: Push[] = []
  const connection = memory().connect({ id: 'c', space: 'default', push: (news) => told.push(news) })
  for (const [id, info] of ['here', 'here', 'here', 'there', 'here'].entries())
    await connection.claim(claimOf('door', String(id), { info }))
  await connection.release('door', '0')
  expect(told).toEqual([
    { type: 'granted', resource: 'door', id: '1', fence: expect.any(Number), heirs: ['2'] },
  ])
  await connection.close()
})
