import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type VirtualProcess, VirtualWorld } from '../../src/testing/virtual-env.js'

const keep = { keepAlive: true }

function worldWith(...names: string[]): [VirtualWorld, ...VirtualProcess[]] {
  const world = new VirtualWorld({ seed: 1 })
  return [world, ...names.map((name) => world.env({ name }))]
}

describe('virtual time', () => {
  it('fires what is due in the order of time, and of planning within one moment', async () => {
    const world = new VirtualWorld({ seed: 1 })
    const fired: string[] = []
    for (const [ms, name] of [
      [20, 'c'],
      [10, 'a'],
      [20, 'd'],
      [10, 'b'],
      [31, 'e'],
    ] as const)
      world.after(ms, () => fired.push(name))
    await world.run(30)
    expect(fired).toEqual(['a', 'b', 'c', 'd'])
    expect(world.timeMs).toBe(30)
  })

  it('fires any plan in order, with some of it cancelled', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ ms: fc.nat(20), cancelled: fc.boolean() })), (plans) => {
        const world = new VirtualWorld({ seed: 1 })
        const fired: number[] = []
        const cancels = plans.map(({ ms }, index) => world.after(ms, () => fired.push(index)))
        for (const [index, cancel] of cancels.entries()) if (plans[index]?.cancelled) cancel()
        world.advanceTo(20)
        const expected = [...plans.entries()].filter(([, plan]) => !plan.cancelled)
        expect(fired).toEqual(expected.sort(([a, x], [b, y]) => x.ms - y.ms || a - b).map(([index]) => index))
      }),
    )
  })

  it('stays in order when a great many plans are cancelled', () => {
    const world = new VirtualWorld({ seed: 1 })
    const fired: number[] = []
    const cancels = Array.from({ length: 5_000 }, (_, index) =>
      world.after((index * 7919) % 5_000, () => fired.push((index * 7919) % 5_000)),
    )
    for (const [index, cancel] of cancels.entries()) if (index % 4 !== 0) cancel()
    world.advanceTo(5_000)
    expect(fired).toHaveLength(1_250)
    expect(fired).toEqual(fired.toSorted((a, b) => a - b))
  })

  it('lets long chains of promises settle between two events of one moment', async () => {
    const world = new VirtualWorld({ seed: 1 })
    const seen: string[] = []
    world.after(5, async () => {
      for (let turn = 0; turn < 500; turn++) await null
      seen.push('first')
    })
    world.after(5, () => seen.push('second'))
    await world.run(5)
    expect(seen).toEqual(['first', 'second'])
  })

  it('runs until a promise settles, and says when it never does', async () => {
    const [world, env] = worldWith('a') as [VirtualWorld, VirtualProcess]
    const later = new Promise<string>((resolve) => env.timer(700, () => resolve('done'), keep))
    await expect(world.until(later)).resolves.toBe('done')
    expect(world.timeMs).toBe(700)
    await expect(world.until(Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(world.until(new Promise(() => {}), 50)).rejects.toThrow('has not settled within 50 ms')
  })

  it('lets time pass no further than the shortest wait says', async () => {
    const world = new VirtualWorld({ seed: 1 })
    const fired: number[] = []
    for (let ms = 1; ms <= 500; ms++) world.after(ms, () => fired.push(ms))
    const work = async (): Promise<void> => {
      await world.run(100)
      expect([world.timeMs, fired.length]).toEqual([100, 100])
      await world.until(world.run(world.timeMs + 100))
      expect([world.timeMs, fired.length]).toEqual([200, 200])
    }
    await world.until(work())
    expect(fired).toHaveLength(200)
  })

  it('lets one wait end while another one goes on', async () => {
    const world = new VirtualWorld({ seed: 1 })
    const early = new Promise<void>((resolve) => world.after(10, resolve))
    const outer = world.until(early).then(() => world.after(5, () => done()))
    let done = (): void => {}
    const late = new Promise<void>((resolve) => {
      done = resolve
    })
    const passed = world.run(10)
    await world.until(late, 1000)
    await Promise.all([outer, passed])
    expect(world.timeMs).toBe(15)
  })

  it('notices a loop that never lets time go on', async () => {
    const [world, env] = worldWith('a') as [VirtualWorld, VirtualProcess]
    const spin = (): void => void env.timer(0, spin, keep)
    spin()
    expect(() => world.advanceTo(1)).toThrow('something spins')
  })

  it('rejects when an event throws', async () => {
    const world = new VirtualWorld({ seed: 1 })
    world.after(1, () => {
      throw new Error('in the event')
    })
    await expect(world.run(2)).rejects.toThrow('in the event')
  })

  it('fires outside the async context of whoever planned or runs', async () => {
    const flow = new AsyncLocalStorage<string>()
    const [world, env] = worldWith('a') as [VirtualWorld, VirtualProcess]
    let seen: string | undefined = 'not called'
    flow.run('mine', () =>
      env.timer(
        1,
        () => {
          seen = flow.getStore()
        },
        keep,
      ),
    )
    await flow.run('other', () => world.run(1))
    expect(seen).toBeUndefined()
  })
})

describe('a virtual process', () => {
  it('repeats itself for the same seed, and differs for another seed or name', () => {
    const numbers = (seed: number, name: string): number[] => {
      const env = new VirtualWorld({ seed }).env({ name })
      return [env.now(), env.random(), env.random()]
    }
    expect(numbers(1, 'a')).toEqual(numbers(1, 'a'))
    expect(numbers(1, 'a')).not.toEqual(numbers(2, 'a'))
    expect(numbers(1, 'a')).not.toEqual(numbers(1, 'b'))
  })

  it('makes ids that no other process makes', () => {
    const [, a, b] = worldWith('a', 'b') as [VirtualWorld, VirtualProcess, VirtualProcess]
    expect(new Set([a.id(), a.id(), b.id(), b.id()]).size).toBe(4)
    const world = new VirtualWorld({ seed: 1 })
    world.env({ name: 'twin' })
    expect(() => world.env({ name: 'twin' })).toThrow("'twin'")
  })

  it('has a clock that drifts, and timers that follow it and are never early', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -0.01, max: 0.01, noNaN: true }),
        fc.integer({ min: 1, max: 1e9 }),
        (driftRate, ms) => {
          const world = new VirtualWorld({ seed: 3 })
          const env = world.env({ driftRate })
          const start = env.now()
          let waited = -1
          env.timer(
            ms,
            () => {
              waited = env.now() - start
            },
            keep,
          )
          world.advanceTo(2e9)
          expect(waited).toBeGreaterThanOrEqual(ms)
          expect(waited).toBeLessThan(ms + 0.01)
          expect(env.now() - start).toBeCloseTo(2e9 * (1 + driftRate), 0)
        },
      ),
    )
  })

  it('has a wall clock that can be wrong, and can jump', () => {
    const world = new VirtualWorld({ seed: 1, wallStartMs: 1_000 })
    const env = world.env({ wallOffsetMs: 50 })
    world.advanceTo(10)
    expect(env.wallMs()).toBe(1_060)
    env.wallOffsetMs = -100
    expect(env.wallMs()).toBe(910)
  })

  it('does nothing while it is paused, though its clock goes on, and makes up for it after', async () => {
    const [world, a, b] = worldWith('a', 'b') as [VirtualWorld, VirtualProcess, VirtualProcess]
    const fired: [string, number][] = []
    const start = a.now()
    const note = (name: string) => () => fired.push([name, a.now() - start])
    a.timer(10, note('timer'), keep)
    b.timer(10, note('other'), keep)
    a.pause()
    a.deliver(note('delivery'))
    await world.run(100)
    expect(fired).toEqual([['other', 10]])
    a.resume()
    await world.run(100)
    expect(fired.slice(1).sort()).toEqual([
      ['delivery', 100],
      ['timer', 100],
    ])
  })

  it('can be paused again before it has made up, and loses nothing by it', async () => {
    const [world, a] = worldWith('a') as [VirtualWorld, VirtualProcess]
    const fired: string[] = []
    a.pause()
    a.deliver(() => fired.push('delivery'))
    await world.run(10)
    a.resume()
    a.pause()
    await world.run(20)
    expect(fired).toEqual([])
    a.resume()
    await world.run(20)
    expect(fired).toEqual(['delivery'])
  })

  it('can cancel a timer that is already late', async () => {
    const [world, a] = worldWith('a') as [VirtualWorld, VirtualProcess]
    let isFired = false
    const cancel = a.timer(
      10,
      () => {
        isFired = true
      },
      keep,
    )
    a.pause()
    await world.run(20)
    a.resume()
    cancel()
    await world.run(30)
    expect(isFired).toBe(false)
  })

  it('wakes in either order of timers and deliveries, by the seed', async () => {
    const orders = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const world = new VirtualWorld({ seed })
      const env = world.env({ name: 'a' })
      const fired: string[] = []
      env.pause()
      env.deliver(() => fired.push('delivery'))
      env.timer(5, () => fired.push('timer'), keep)
      await world.run(10)
      env.resume()
      await world.run(10)
      orders.add(fired.join())
    }
    expect([...orders].sort()).toEqual(['delivery,timer', 'timer,delivery'])
  })

  it('never does anything after its death', async () => {
    const [world, a] = worldWith('a') as [VirtualWorld, VirtualProcess]
    const fired: string[] = []
    a.timer(1, () => fired.push('timer'), keep)
    a.kill()
    a.deliver(() => fired.push('delivery'))
    a.timer(1, () => fired.push('later timer'), keep)
    a.resume()
    await world.run(10)
    expect(fired).toEqual([])
    expect(a.state).toBe('killed')
  })
})
