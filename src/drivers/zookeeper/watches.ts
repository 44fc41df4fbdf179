import { EventKind } from './protocol.js'
import type { SetWatches, WatcherEvent } from './records.js'

/** What happened to a watched node. */
export interface WatchEvent {
  readonly type: 'created' | 'deleted' | 'changed' | 'children'
  readonly path: string
  /**
   * The watch was set again on a new connection. Then `changed` may also mean that the node was
   * removed and made anew meanwhile.
   */
  readonly wasSetAgain?: boolean
}

/** Called once, at the next change; set another watch to hear of later ones. Must not throw. */
export type WatchListener = (event: WatchEvent) => void

/**
 * `data`: of a node that exists. `exists`: of one that does not. `children`: of its list of
 * children.
 */
export type WatchKind = 'data' | 'exists' | 'children'

/** Each event's name, and the watches that it fires. */
const FIRES: Readonly<Record<number, { type: WatchEvent['type']; kinds: readonly WatchKind[] }>> = {
  [EventKind.created]: { type: 'created', kinds: ['data', 'exists'] },
  [EventKind.deleted]: { type: 'deleted', kinds: ['data', 'exists', 'children'] },
  [EventKind.dataChanged]: { type: 'changed', kinds: ['data', 'exists'] },
  [EventKind.childrenChanged]: { type: 'children', kinds: ['children'] },
}

/**
 * Below a server's limit for one request (jute.maxbuffer, a megabyte), with room for the rest of
 * the request.
 */
const MOST_PATH_BYTES = 128 * 1024

/** The watches of a session, by the server's paths, to be set again on a new connection. */
export class ZooKeeperWatches {
  readonly #listeners: Record<WatchKind, Map<string, Set<WatchListener>>> = {
    data: new Map(),
    exists: new Map(),
    children: new Map(),
  }
  readonly #setAgain = new WeakSet<WatchListener>()

  get size(): number {
    return Object.values(this.#listeners).reduce((sum, paths) => sum + paths.size, 0)
  }

  add(kind: WatchKind, path: string, listener: WatchListener): void {
    const paths = this.#listeners[kind]
    const listeners = paths.get(path)
    if (listeners) listeners.add(listener)
    else paths.set(path, new Set([listener]))
  }

  /**
   * The listener is not called any more. The server's watch stays until it fires, and is ignored
   * then.
   */
  remove(path: string, listener: WatchListener): void {
    for (const paths of Object.values(this.#listeners)) {
      const listeners = paths.get(path)
      if (listeners?.delete(listener) && listeners.size === 0) paths.delete(path)
    }
  }

  wasSetAgain(listener: WatchListener): boolean {
    return this.#setAgain.has(listener)
  }

  /** Takes out the watches that an event fires. */
  take(event: WatcherEvent): { type: WatchEvent['type']; listeners: Iterable<WatchListener> } | null {
    const fires = FIRES[event.kind]
    if (fires === undefined) return null
    const listeners = new Set<WatchListener>()
    for (const kind of fires.kinds) {
      for (const listener of this.#listeners[kind].get(event.path) ?? []) listeners.add(listener)
      this.#listeners[kind].delete(event.path)
    }
    return { type: fires.type, listeners }
  }

  clear(): void {
    for (const paths of Object.values(this.#listeners)) paths.clear()
  }

  /** The requests for a new connection, each small enough for a server. */
  *toSetAgain(relativeZxid: bigint): Iterable<SetWatches> {
    let part = emptyPart(relativeZxid)
    let bytes = 0
    for (const kind of ['data', 'exists', 'children'] as const) {
      for (const [path, listeners] of this.#listeners[kind]) {
        for (const listener of listeners) this.#setAgain.add(listener)
        part[kind].push(path)
        bytes += Buffer.byteLength(path)
        if (bytes < MOST_PATH_BYTES) continue
        yield part
        part = emptyPart(relativeZxid)
        bytes = 0
      }
    }
    if (bytes > 0) yield part
  }
}

function emptyPart(relativeZxid: bigint) {
  return { relativeZxid, data: [] as string[], exists: [] as string[], children: [] as string[] }
}
