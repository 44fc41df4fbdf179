import { expect, it } from 'vitest'
import type { ClaimRequest, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { lossyStore } from '../../src/testing/network.js'
import { type VirtualProcess, VirtualWorld } from '../../src/testing/virtual-env.js'

/** HOLDFAST_SEEDS=5000 runs more of them; HOLDFAST_SEED=42 starts elsewhere. */
const SEEDS = Number(process.env['HOLDFAST_SEEDS'] ?? 40)
const FIRST = Number(process.env['HOLDFAST_SEED'] ?? 1)

/**
 * One world in which calls and pushes take their time and overtake each other, but nothing goes
 * wrong.
 */
class CalmWorld {
  readonly #world: VirtualWorld
  readonly #server: VirtualProcess
  readonly #store: Store
  readonly #network: ReturnType<typeof lossyStore>
  /** Claims, as they came to the store. */
  readonly #arrived: string[] = []
  /** And as they held. */
  readonly #served: { id: string; fence: number }[] = []
  readonly problems: string[] = []

  constructor(seed: number) {
    this.#world = new VirtualWorld({ seed })
    this.#server = this.#world.env({ name: 'server' })
    this.#store = memory({ env: this.#server })
    const noting = onClaim(this.#store, ({ id }) => {
      if (!this.#arrived.includes(id)) this.#arrived.push(id)
    })
    this.#network = lossyStore(noting, this.#world, { server: this.#server })
  }

  async run(): Promise<void> {
    const processes = ['p1', 'p2', 'p3'].map((name) => this.#process(this.#world.env({ name })))
    await this.#world.until(Promise.all(processes), 600_000)
    const ranks = this.#served.map(({ id }) => this.#arrived.indexOf(id))
    for (const [index, rank] of ranks.entries())
      if (rank <= (ranks[index - 1] ?? -1)) this.problems.push(`number ${rank} was overtaken`)
    for (const [index, { fence }] of this.#served.entries())
      if (fence <= (this.#served[index - 1]?.fence ?? 0)) this.problems.push(`fence ${fence} fell`)
    await this.#world.run(this.#world.timeMs + 1000)
    const looker = this.#store.connect({ id: 'looker', space: 'default', push: () => {} })
    for await (const { claims } of looker.inspect({ prefix: '' }))
      this.problems.push(`${claims.length} claims were left behind`)
  }

  /** How often a hold was passed on: the fence that was kept for an heir is the next one. */
  get passes(): number {
    return this.#served.filter(({ fence }, index) => fence - 1 === this.#served[index - 1]?.fence).length
  }

  async #process(process: VirtualProcess): Promise<void> {
    let sent = ''
    const store = onClaim(this.#network.from(process), ({ id }) => {
      sent = id
    })
    const locks = new Holdfast(store, { env: process, order: 'strict' })
    const task = async (): Promise<void> => {
      for (let turn = 0; turn < 20; turn++) {
        await pause(process, 20)
        const asked = locks.mutex('door').acquire(someOptions(process))
        // It is sent before the call returns.
        await this.#use(process, asked, sent)
      }
    }
    await Promise.all(Array.from({ length: 8 }, task))
  }

  async #use(process: VirtualProcess, asked: ReturnType<Door['acquire']>, id: string): Promise<void> {
    const hold = await asked.catch(() => null)
    if (!hold) return
    this.#served.push({ id, fence: hold.fence })
    await pause(process, process.random() < 0.1 ? 300 : 10)
    const dice = process.random()
    if (dice < 0.05) await hold.extend(2000)
    else if (dice < 0.1) await hold.export()
    if (!hold.isValid) this.problems.push(`${id} was lost: ${hold.lostBecause?.message}`)
    // false where the late word of its grant has it withdrawn, and that overtakes the release.
    await hold.release()
  }
}

type Door = ReturnType<Holdfast['mutex']>

/** Mostly in the same words, and mostly with patience. */
function someOptions(process: VirtualProcess): object {
  const dice = process.random()
  return {
    lease: dice < 0.1 ? 900 : 800,
    ...(dice > 0.9 ? { label: 'in other words' } : {}),
    ...(process.random() < 0.2 ? { wait: process.random() * 300 } : {}),
  }
}

function pause(process: VirtualProcess, mostMs: number): Promise<void> {
  return new Promise((resolve) => {
    process.timer(process.random() * mostMs, resolve, { keepAlive: true })
  })
}

/** The store, but somebody hears of each claim when it comes. */
function onClaim(store: Store, hear: (request: ClaimRequest) => void): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const real = store.connect(client)
      const claim = (request: ClaimRequest) => {
        hear(request)
        return real.claim(request)
      }
      return new Proxy(real, {
        get: (target, key) => (key === 'claim' ? claim : Reflect.get(target, key)?.bind(target)),
      })
    },
  }
}

it(`serves everybody in order of arrival, and loses nothing where nothing goes wrong, in ${SEEDS} simulated worlds`, {
  timeout: SEEDS * 4000,
}, async () => {
  let passes = 0
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const world = new CalmWorld(seed)
    await world.run()
    expect(world.problems, `seed ${seed}`).toEqual([])
    passes += world.passes
  }
  // A run counts only if enough has happened in it.
  expect(passes).toBeGreaterThan(SEEDS * 10)
})
