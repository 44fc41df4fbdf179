import { expect, it } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { Holdfast } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'

it('a free lock is granted, however short the wait is beside the pauses of the process', async () => {
  let pausedMs = 0
  const env = Object.assign(Object.create(systemEnv) as typeof systemEnv, {
    now() {
      pausedMs += 20
      return systemEnv.now() + pausedMs
    },
  })
  const locks = new Holdfast(memory(), { env, lease: '1h' })
  for (const names of [['a'], ['a', 'b']]) {
    const hold = await locks.all(names).acquire({ wait: 10 })
    expect(hold.isValid).toBe(true)
    await hold.release()
  }
  await locks.close({ drain: 0 })
})
