import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

it('begins no work before run() has returned, also where the store answers at once', async () => {
  const locks = new Holdfast(memory())
  const steps: string[] = []
  const running = locks.mutex('a').run(() => void steps.push('work'))
  steps.push('returned')
  await running
  expect(steps).toEqual(['returned', 'work'])
  await locks.close()
})
