import { getEventListeners } from 'node:events'
import { types } from 'node:util'
import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

/** What is kept in a signal: on Node 20 also something of each signal that was made of it. */
function keptIn(signal: AbortSignal): number {
  const sets = Object.getOwnPropertySymbols(signal)
    .map((key): unknown => Reflect.get(signal, key))
    // Not by `instanceof`, which Node's own sets are not.
    .filter(types.isSet)
  return sets.reduce((sum, { size }) => sum + size, getEventListeners(signal, 'abort').length)
}

it('a signal that outlives many meetings keeps nothing of them', async () => {
  await using locks = new Holdfast(memory())
  const { signal } = new AbortController()
  const phase = locks.barrier('phase', 2)
  for (let round = 0; round < 10; round++) await Promise.all([phase.meet({ signal }), phase.meet({ signal })])
  expect(keptIn(signal)).toBe(0)
})

it('a meeting ends when its signal aborts', async () => {
  await using locks = new Holdfast(memory())
  const controller = new AbortController()
  const phase = locks.barrier('phase', 2)
  const meeting = phase.meet({ signal: controller.signal })
  await expect.poll(() => phase.arrived()).toBe(1)
  controller.abort(new Error('stop'))
  await expect(meeting).rejects.toMatchObject({ code: 'ABORTED', cause: { message: 'stop' } })
  expect(await phase.arrived()).toBe(0)
})
