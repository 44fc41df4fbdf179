import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

it('a listener to a loss is not inside the run that caused the loss', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const door = locks.mutex('door')
  const hold = await locks.mutex('passed on').acquire()
  const entered = new Promise<boolean>((resolve) => {
    hold.signal.addEventListener('abort', async () => {
      const got = await door.tryAcquire()
      await got?.release()
      resolve(got !== null)
    })
  })
  const exported = await hold.export()
  await door.run(async () => {
    await using _adopted = await locks.adopt(exported)
    expect(await entered).toBe(false)
  })
})
