import assert from 'node:assert/strict'
import { systemEnv } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest, Connection, Push } from '../../contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../primitives/holdfast.js'
import type { Lock } from '../../primitives/lock.js'
import type { ResourceView } from '../../primitives/views.js'
import { lockOf } from '../lock-kinds.js'
import { type StartOptions, WorkerClient } from '../worker-client.js'
import { eventually, inTime, PATIENCE_MS, pass, settled } from './checks.js'
import type { Guise } from './guises.js'
import { InterceptedStore } from './intercepted-store.js'
import type { ConformanceSubject, Venue } from './suite.js'

/** Leases for holds that are meant to lapse within the case. */
export const SHORT_MS = 400
/**
 * Leases for holds that are renewed during the case: a stall of the machine of a second and a half
 * must not end them.
 */
export const RENEWED_MS = 3000
/**
 * Leases that outlast every case. With a presence of this, no pulse is due before patience is over:
 * what comes was pushed.
 */
export const LONG_MS = 120_000

/**
 * The store's time-out where a case makes the store fail: short, and yet a loaded machine mostly
 * answers within a third of it.
 */
export const IMPATIENT_MS = 3000
/**
 * The store's time-out where a case loses a reply: a third of it passes before the call is
 * repeated, and then there must be an answer.
 */
export const FORGIVING_MS = 6000

/**
 * For clients that no case disturbs: a machine on which many processes start at once may not answer
 * for long.
 */
const PATIENT = { storeTimeout: '30s' } as const

/**
 * The names that cases about every lock use: where somebody else holds permits, it does so of
 * these.
 */
const NAMES = ['door', 'window']
const SOMEBODY_ELSE = 'somebody else'

/**
 * A raw connection, without an engine: what it claims is not renewed, as if its process had died.
 */
export interface RawClient extends Connection {
  readonly pushes: Push[]
}

/**
 * As the machine's own, but for the garbage: cases drop holds, which must not be taken for
 * forgotten.
 */
const ENV = Object.create(systemEnv) as typeof systemEnv

/** Everything that a case works with, cleaned up at its end. */
export class Scene {
  readonly #subject: ConformanceSubject
  readonly #venue: Venue
  readonly #guise: Guise
  readonly #clients: Holdfast[] = []
  readonly #stores: InterceptedStore[] = []
  readonly #connections: Connection[] = []
  readonly #workers: WorkerClient[] = []
  #observer: Holdfast | undefined

  constructor(subject: ConformanceSubject, venue: Venue, guise: Guise) {
    this.#subject = subject
    this.#venue = venue
    this.#guise = guise
  }

  get #order(): HoldfastOptions {
    return { order: this.#subject.order ?? 'cohort' }
  }

  /** Before the case begins: somebody else takes what the guise says is taken. */
  async prepare(): Promise<void> {
    const { lock, taken } = this.#guise
    if (taken === 0 || lock.kind !== 'semaphore') return
    const others = this.client()
    for (const name of NAMES)
      await others
        .semaphore(name, lock.capacity)
        .acquire({ permits: taken, lease: LONG_MS, label: SOMEBODY_ELSE })
  }

  /** The lock that the case is about, of a client of its own or of the given one. */
  lock(name: string, locks: Holdfast = this.client()): Lock {
    return forgivingly(lockOf(locks, name, this.#guise.lock))
  }

  /** false: a session's time-out bounds every lease, and only the store knows when that began. */
  get perHoldLease(): boolean {
    return this.#venue.store().capabilities.perHoldLease
  }

  /** false: the store keeps only locks, and refuses semaphores and barriers. */
  get countsPermits(): boolean {
    return this.#venue.store().capabilities.countsPermits !== false
  }

  /**
   * Whether a holder learns that others wait for it. Where it does not, holds are passed on for a
   * turn only.
   */
  async tellsOfWaiters(): Promise<boolean> {
    const reply = await this.raw().claim(claimOf('elsewhere', 'raw:1', { block: 2 }))
    return reply.status === 'granted' && reply.isWanted !== undefined
  }

  /** Whether beats may say which fences they reserve. */
  get takesFences(): boolean {
    return this.#venue.store().capabilities.takesFences === true
  }

  /** Whether a push tells a holder at this moment that others wait. */
  get tellsWanted(): boolean {
    return this.#venue.store().capabilities.tellsWanted === true
  }

  /** By how much a hold can be extended: not beyond a session, where that bounds every lease. */
  get extensionMs(): number {
    return this.perHoldLease ? 20_000 : 3000
  }

  /** A lease that a loaded machine renews in time after a failure; no longer than a session. */
  get longRenewedMs(): number {
    return this.perHoldLease ? 18_000 : 9000
  }

  /** A claim such as that lock would send. */
  claimOf(resource: string, id: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
    return claimOf(resource, id, { ...this.#guise.wants, ...changes })
  }

  /** A client of its own, over a store value of its own. */
  client(options: HoldfastOptions = {}): Holdfast {
    const client = new Holdfast(this.#venue.store(), { ...PATIENT, ...this.#order, env: ENV, ...options })
    this.#clients.push(client)
    return client
  }

  /** A client over a store that the case can disturb. */
  intercepted(options: HoldfastOptions = {}): { locks: Holdfast; store: InterceptedStore } {
    const store = new InterceptedStore(this.#venue.store())
    const locks = new Holdfast(store, { ...this.#order, env: ENV, ...options })
    this.#stores.push(store)
    this.#clients.push(locks)
    return { locks, store }
  }

  /** A connection with no engine behind it. */
  raw(id = `raw${this.#connections.length}`): RawClient {
    const pushes: Push[] = []
    const push = (news: Push): void => void pushes.push(news)
    const connection = this.#venue.store().connect({ id, space: 'default', push })
    this.#connections.push(connection)
    return { ...bound(connection), pushes }
  }

  /** Another process, with a client open on the same lines. */
  async worker(client: Omit<HoldfastOptions, 'env'> = {}, start: StartOptions = {}): Promise<WorkerClient> {
    const worker = await WorkerClient.start(start)
    this.#workers.push(worker)
    const { url } = this.#venue
    assert.ok(url !== undefined, 'A venue without a url: give the subject `oneProcess` to skip these cases')
    const address = { url, storeModule: this.#subject.storeModule ?? null }
    await worker.call('open', address, { ...PATIENT, ...this.#order, ...client }, this.#guise.lock)
    return worker
  }

  workers(count: number, client: Omit<HoldfastOptions, 'env'> = {}): Promise<WorkerClient[]> {
    return Promise.all(Array.from({ length: count }, () => this.worker(client)))
  }

  /**
   * Stops a process outside of any call: in a store of files, one that is stopped inside its turn
   * stops everybody.
   */
  async pause(worker: WorkerClient): Promise<void> {
    const bystander = this.client({ storeTimeout: IMPATIENT_MS })
    for (let time = 0; time < 10; time++) {
      worker.pause()
      const outcome = await settled(bystander.mutex(`probe ${worker.pid} ${time}`).run(() => {}))
      if ('value' in outcome) return
      worker.resume()
      await pass(20)
    }
    assert.fail('The store answers nobody while a process stands still')
  }

  /**
   * The line of that name as another client sees it; undefined: it is empty. Claims from before the
   * case do not count.
   */
  async line(name: string): Promise<ResourceView | undefined> {
    this.#observer ??= this.client()
    for await (const resource of this.#observer.inspect({ prefix: name })) {
      if (resource.name !== name) continue
      const holders = resource.holders.filter(({ label }) => label !== SOMEBODY_ELSE)
      return holders.length + resource.waiters.length > 0 ? { ...resource, holders } : undefined
    }
    return undefined
  }

  /**
   * Resolves when so many are in line behind the holder. A long line takes long to form, and is not
   * looked at all the time meanwhile.
   */
  async waiting(name: string, count: number): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      if ((await this.line(name))?.waiters.length === count) return true
      await pass(count / 50)
      return false
    }
    await eventually(`${count} waiters for ${name}`, isThere, PATIENCE_MS + 5 * count)
  }

  /** Resolves when the one with that label is in line; others may have lapsed in the meantime. */
  async inLine(name: string, label: string): Promise<void> {
    await eventually(`${label} in the line of ${name}`, async () => {
      const line = await this.line(name)
      return line?.waiters.some((waiter) => waiter.label === label) === true
    })
  }

  /**
   * Resolves when nobody holds or waits. A quorum may show for a moment what a slow member has
   * still to give back.
   */
  async empty(name: string): Promise<void> {
    await eventually(`nobody in the line of ${name}`, async () => (await this.line(name)) === undefined)
  }

  /** Ends everything. What a process complained about fails the case. */
  async end(): Promise<void> {
    for (const store of this.#stores) store.heal()
    for (const worker of this.#workers) await worker.end()
    await inTime(
      'closing the clients',
      Promise.all(this.#clients.map((client) => settled(client.close({ drain: 0 })))),
    )
    for (const connection of this.#connections) await settled(connection.close())
    await this.#venue.dispose()
    const complaints = this.#workers.flatMap((worker) => worker.complaints)
    assert.deepEqual(complaints, [], 'A process had an unhandled rejection or error')
  }
}

function bound(connection: Connection): Connection {
  return {
    claim: (request) => connection.claim(request),
    pulse: (beats) => connection.pulse(beats),
    release: (resource, id) => connection.release(resource, id),
    evict: (resource, fence) => connection.evict(resource, fence),
    cancel: (resource, id) => connection.cancel(resource, id),
    resize: (resource, declared, capacity) => connection.resize(resource, declared, capacity),
    read: (key, watch) => connection.read(key, watch),
    write: (change) => connection.write(change),
    states: (prefix) => connection.states(prefix),
    inspect: (query) => connection.inspect(query),
    close: () => connection.close(),
  }
}

/** A claim for a mutex, as the engine would send it. */
export function claimOf(resource: string, id: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    resource,
    id,
    permits: EXCLUSIVE,
    capacity: EXCLUSIVE,
    leaseMs: LONG_MS,
    presenceMs: LONG_MS,
    maxHoldMs: null,
    mode: 'queue',
    floor: 0,
    block: 1,
    info: '{}',
    ...changes,
  }
}

/**
 * A call may fail while its case waits for something else. The case fails then, and nothing beyond
 * it does.
 */
function forgivingly(lock: Lock): Lock {
  for (const name of ['acquire', 'tryAcquire', 'run'] as const) {
    const call = lock[name] as (...args: unknown[]) => Promise<unknown>
    const forgiving = (...args: unknown[]): Promise<unknown> => {
      const promise = call.apply(lock, args)
      promise.catch(nothing)
      return promise
    }
    Object.assign(lock, { [name]: forgiving })
  }
  return lock
}
