import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { type Deferred, deferred } from '../../src/base/deferred.js'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { type Lock, LockManager, type LockOptions } from '../../src/web-locks/index.js'

/** One client with its lock manager: what a window, a frame or a worker is in a browser. */
export interface Site {
  readonly client: Holdfast
  readonly locks: LockManager
  /** One more client of the same store. */
  another(space?: string): Site
}

const KINDS = [
  { kind: 'memory', open: sharedMemory },
  { kind: 'sqlite', open: sharedFile },
]

/** Tests on each store that needs no server. Each test asks for a site of its own, which ends with it. */
export function onEachStore(title: string, tests: (newSite: () => Site) => void): void {
  describe.each(KINDS)(`${title} ($kind)`, ({ open }) => tests(() => siteOn(open())))
}

/** A site on a given store: each call of `store` is one more user of the same lines. */
export function siteOn(store: () => Store, space = 'web'): Site {
  const client = new Holdfast(store(), { space })
  onTestFinished(() => client.close())
  return { client, locks: new LockManager(client), another: (other) => siteOn(store, other ?? space) }
}

function sharedMemory(): () => Store {
  const store = memory()
  return () => store
}

/** Store values of their own: they meet only in the file, as different processes do. */
function sharedFile(): () => Store {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-web-locks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return () => sqlite(join(folder, 'locks.db'))
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
