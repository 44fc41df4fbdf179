import { expect, it } from 'vitest'
import type { Env } from '../../src/base/env.js'
import type { Beat, BeatReply, Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LEASE_MS = 3000
const MAX_BEATS = 20

type Pulse = Connection['pulse']

/** The store, with batches of a usual size and pulses that are answered in another way. */
function withPulse(
  store: Store,
  answer: (beats: readonly Beat[], pulse: Pulse) => Promise<BeatReply[]>,
): Store {
  return {
    ...store,
    name: store.name,
    capabilities: { ...store.capabilities, maxBeats: MAX_BEATS },
    connect(client) {
      const connection = store.connect(client)
      const pulse = connection.pulse.bind(connection)
      connection.pulse = (beats) => answer(beats, pulse)
      return connection
    },
  }
}

function pause(env: Env, ms: number): Promise<void> {
  return new Promise((resolve) => env.timer(ms, resolve, { keepAlive: true }))
}

/** Keeps so many holds for a minute, and counts those that are lost. */
async function lostOf(count: number, world: VirtualWorld, store: Store): Promise<number> {
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }) })
  let lost = 0
  for (let n = 0; n < count; n++) {
    const hold = await world.until(locks.mutex(`held ${n}`).acquire({ lease: LEASE_MS }))
    hold.signal.addEventListener('abort', () => lost++)
  }
  await world.run(world.timeMs + 60_000)
  const result = lost
  await world.until(locks.close())
  return result
}

it('keeps its holds where every answer to a pulse takes longer than a quarter of the lease', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const env = world.env({ name: 'server' })
  const store = withPulse(memory({ env }), async (beats, pulse) => {
    const replies = await pulse(beats)
    await pause(env, LEASE_MS * 0.4)
    return replies
  })
  expect(await lostOf(MAX_BEATS * 8, world, store)).toBe(0)
})

it('keeps its holds where the store does one thing after the other, and is busy most of the time', async () => {
  const world = new VirtualWorld({ seed: 2 })
  const env = world.env({ name: 'server' })
  let last: Promise<unknown> = Promise.resolve()
  const count = MAX_BEATS * 20
  const store = withPulse(memory({ env }), (beats, pulse) => {
    const turn = last.then(async () => {
      // All of them take half of the lease: each can be renewed once, but not twice.
      await pause(env, (LEASE_MS * beats.length) / (count * 2))
      return pulse(beats)
    })
    last = turn
    return turn
  })
  expect(await lostOf(count, world, store)).toBe(0)
})

it('sends less to a store that is silent, and takes what the old calls bring when it answers again', async () => {
  const world = new VirtualWorld({ seed: 3 })
  const env = world.env({ name: 'server' })
  let silence: Promise<void> | null = null
  const sent: number[] = []
  const store = withPulse(memory({ env }), async (beats, pulse) => {
    sent.push(world.timeMs)
    await silence
    return pulse(beats)
  })
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }) })
  const holds = []
  for (let n = 0; n < MAX_BEATS * 20; n++)
    holds.push(await world.until(locks.mutex(`held ${n}`).acquire({ lease: '1h' })))
  let speak = () => {}
  silence = new Promise((resolve) => {
    speak = resolve
  })
  await world.run(world.timeMs + 30 * 60_000)
  const from = world.timeMs
  await world.run(from + 60_000)
  // Without a limit each of the twenty batches is sent again every few seconds.
  expect(sent.filter((at) => at >= from).length).toBeLessThan(40)
  silence = null
  speak()
  await world.run(world.timeMs + 5000)
  expect(holds.filter((hold) => !hold.isValid)).toHaveLength(0)
  await world.until(locks.close())
})
