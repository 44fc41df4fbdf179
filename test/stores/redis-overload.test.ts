import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { Holdfast, type LockOrder } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { lineLength } from './line-length.js'

const PROCESSES = 4
const CALLERS = 500
/** Of those that come back until they are served: each of these costs a hand-off. */
const RETURNING = 100
const MOST = 100
const PATIENCE_MS = 120_000

type Message =
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly ms: number }
  | { readonly type: 'served'; readonly served: number }

/** A process with many callers. */
class Caller {
  /** How long each refusal took. */
  readonly refusals: number[] = []
  readonly ready: Promise<void>
  readonly served: Promise<number>
  readonly #child: ChildProcess

  constructor(onRefusal: () => void, ...args: string[]) {
    const file = fileURLToPath(new URL('redis/overload.mjs', import.meta.url))
    const child = spawn(process.execPath, [file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    const { promise: ready, resolve: onReady } = deferred<void>()
    const { promise: served, resolve: onServed, reject: onFailure } = deferred<number>()
    this.#child = child
    this.ready = ready
    this.served = served
    served.catch(() => {})
    child.once('close', (code) => onFailure(new Error(`a process ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as Message
      if (message.type === 'ready') onReady()
      else if (message.type === 'served') onServed(message.served)
      else {
        this.refusals.push(message.ms)
        onRefusal()
      }
    })
  }

  begin(): void {
    this.#child.stdin?.write('go\n')
  }

  async end(): Promise<void> {
    const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null
    this.#child.kill('SIGKILL')
    if (!isOver) await once(this.#child, 'exit')
  }
}

/** Several of them. */
class Crowd {
  readonly #callers: readonly Caller[]
  readonly #expected: number
  readonly #allRefused = deferred<void>()

  /** `refused`: so many refusals are waited for. */
  constructor(url: string, order: LockOrder, how: 'once' | 'again', refused = 0) {
    this.#expected = refused
    const callers = how === 'once' ? CALLERS : RETURNING
    const args = [url, order, String(callers), String(MOST), how]
    this.#callers = Array.from({ length: PROCESSES }, () => new Caller(() => this.#onRefusal(), ...args))
  }

  get refusals(): number[] {
    return this.#callers.flatMap(({ refusals }) => refusals).sort((a, b) => a - b)
  }

  async begin(): Promise<void> {
    await Promise.all(this.#callers.map(({ ready }) => ready))
    for (const caller of this.#callers) caller.begin()
  }

  /** Resolves when that many were refused. */
  get areRefused(): Promise<void> {
    return this.#allRefused.promise
  }

  async served(): Promise<number> {
    const counts = await Promise.all(this.#callers.map(({ served }) => served))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async end(): Promise<void> {
    await Promise.all(this.#callers.map((caller) => caller.end()))
  }

  #onRefusal(): void {
    if (this.#callers.reduce((sum, { refusals }) => sum + refusals.length, 0) >= this.#expected)
      this.#allRefused.resolve()
  }
}

/** Looks at the line all the time; the most that waited in it. */
function watchLine(locks: Holdfast): { most: number; stop(): Promise<void> } {
  let isOver = false
  const watch = {
    most: 0,
    async stop() {
      isOver = true
      await watching
    },
  }
  const watching = (async () => {
    while (!isOver) watch.most = Math.max(watch.most, await lineLength(locks))
  })()
  return watch
}

describeOn('redis', 'two thousand callers of four processes on one lock with maxWaiters', () => {
  let server: RedisServer
  let locks: Holdfast
  let crowd: Crowd | undefined
  beforeAll(async () => {
    server = await startRedis()
    locks = new Holdfast(redis(server.url))
  })
  afterEach(async () => {
    await crowd?.end()
  })
  afterAll(async () => {
    await locks.close()
    await server.stop()
  })

  it.each([
    // Every caller has a place in the store's line.
    { order: 'strict', places: MOST, waiting: MOST },
    // The callers of a process share one.
    { order: 'cohort', places: PROCESSES, waiting: PROCESSES * MOST },
  ] as const)(
    'in $order order: $waiting wait, the others learn that it is full, and all that wait are served',
    async ({ order, places, waiting }) => {
      const refused = PROCESSES * CALLERS - waiting
      crowd = new Crowd(server.url, order, 'once', refused)
      const hold = await locks.mutex('door').acquire({ lease: '3m' })
      onTestFinished(async () => void (await hold.release()))
      const watch = watchLine(locks)
      onTestFinished(() => watch.stop())
      await crowd.begin()
      await Promise.race([crowd.areRefused, crowd.served()])
      expect(await lineLength(locks)).toBe(places)
      await hold.release()
      expect(await crowd.served()).toBe(waiting)
      await watch.stop()
      expect(watch.most).toBe(places)
      expect(await lineLength(locks)).toBe(0)
      const { refusals } = crowd
      expect(refusals.length).toBe(refused)
      const at = (part: number): string => (refusals[Math.floor((refused - 1) * part)] ?? 0).toFixed(0)
      console.log(
        `${order}: most in line ${watch.most}; ${refused} refused after ${at(0.5)} ms (median), ${at(1)} ms (longest)`,
      )
    },
    PATIENCE_MS,
  )

  it(
    'all are served in the end if those that are refused come back, and the line stays within the bound',
    async () => {
      crowd = new Crowd(server.url, 'strict', 'again')
      const watch = watchLine(locks)
      onTestFinished(() => watch.stop())
      await crowd.begin()
      const startedAt = performance.now()
      expect(await crowd.served()).toBe(PROCESSES * RETURNING)
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      await watch.stop()
      expect(crowd.refusals.length).toBeGreaterThan(0)
      expect(watch.most).toBeLessThanOrEqual(MOST)
      console.log(
        `again: most in line ${watch.most}; ${PROCESSES * RETURNING} served, ${crowd.refusals.length} refused, ${seconds} s`,
      )
    },
    PATIENCE_MS,
  )
})
