import { expect, onTestFinished } from 'vitest'
import { type Deferred, deferred } from '../../src/base/deferred.js'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { type Lock, LockManager, type LockOptions } from '../../src/web-locks/index.js'

/** One client with its lock manager: what a window, a frame or a worker is in a browser. */
export interface Site {
  readonly client: Holdfast
  readonly locks: LockManager
  readonly space: string
  /** Where other processes find the same store; undefined: they cannot. */
  readonly url: string | undefined
  /** One more client of the same store. */
  another(space?: string): Site
}

/** Declares a case. */
export type Declare = (title: string, run: () => Promise<void>) => void

/** Cases for every store. Each asks for a site of its own: a fresh client in a fresh space. */
export interface Suite {
  readonly title: string
  readonly tests: (newSite: () => Site, it: Declare) => void
  /** Only for stores that other processes can reach. */
  readonly needsProcesses?: boolean
}

const suites: Suite[] = []

/** Cases that `runOn` declares for each store. */
export function onEachStore(title: string, tests: Suite['tests']): void {
  suites.push({ title, tests })
}

/** The same, with other processes that use the store. */
export function onEachSharedStore(title: string, tests: Suite['tests']): void {
  suites.push({ title, tests, needsProcesses: true })
}

/** All that were declared so far. */
export function allSuites(): readonly Suite[] {
  return suites
}

let spaces = 0

/** A space that nobody has used before. */
function freshSpace(): string {
  return `web-${process.pid}-${spaces++}`
}

/** A site on a given store: each call of `store` is one more user of the same lines. */
export function siteOn(store: () => Store, { space = freshSpace(), url }: Partial<Site> = {}): Site {
  const client = new Holdfast(store(), { space })
  onTestFinished(() => client.close({ drain: 0 }))
  const another = (other = space): Site =>
    siteOn(store, { space: other, ...(url === undefined ? {} : { url }) })
  return { client, locks: new LockManager(client), space, url, another }
}

/** A memory store with some calls changed: lost, late or failing. */
export function wrapped(change: (connection: Connection) => Partial<Connection>): () => Store {
  const store = memory()
  return () => ({
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const connection = store.connect(client)
      const changed = change(connection)
      const get = (target: Connection, key: string | symbol): unknown =>
        Reflect.get(changed, key) ?? Reflect.get(target, key)?.bind(target)
      return new Proxy(connection, { get })
    },
  })
}

/** A lock that is held until it is told otherwise. */
export interface Held {
  readonly lock: Lock
  /** What the callback returned; settle it to end the lock. */
  readonly work: Deferred<unknown>
  /** What `request` returned. A rejection is no complaint of its own. */
  readonly released: Promise<unknown>
}

/** Resolves when the lock is granted. */
export function hold(locks: LockManager, name: string, options: LockOptions = {}): Promise<Held> {
  return new Promise((resolve, reject) => {
    const work = deferred<unknown>()
    const released = locks.request(name, options, (lock) => {
      if (lock) resolve({ lock, work, released })
      else reject(new Error(`'${name}' was not available`))
      return work.promise
    })
    released.catch(reject)
  })
}

/** Whether a lock would be granted at once. */
export function isAvailable(locks: LockManager, name: string, options: LockOptions = {}): Promise<boolean> {
  return locks.request(name, { ...options, ifAvailable: true }, (lock) => lock !== null)
}

export function neverCalled(): never {
  throw new Error('this callback must not be called')
}

const CODES = { NotSupportedError: 9, InvalidStateError: 11, AbortError: 20 }

/** That a promise rejects with the DOMException of that name. */
export async function rejectsWithDom(promise: Promise<unknown>, name: keyof typeof CODES): Promise<Error> {
  const error = await promise.then(neverCalled, (reason) => reason)
  expect(Object.prototype.toString.call(error)).toBe('[object DOMException]')
  expect({ name: error.name, code: error.code }).toEqual({ name, code: CODES[name] })
  return error
}
