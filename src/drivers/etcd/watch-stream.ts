import type { GrpcCall } from './call.js'
import type { EtcdLink } from './link.js'
import { encode, type Key, writeKey } from './requests.js'
import { type KeyEvent, readWatch, type WatchAnswer } from './responses.js'

const WATCH = '/etcdserverpb.Watch/Watch'

/** What to watch, and what to call. */
export interface KeyWatch {
  /** The key, or the first one of a range. */
  readonly key: Key
  /** Where the range ends; it is not part of it. Left out: just this key. */
  readonly end?: Key | undefined
  /** The first revision to tell of. */
  readonly from: number
  /** The changes of one or several revisions, in order. */
  onEvents(events: readonly KeyEvent[]): void
  /**
   * Revisions that were to be told have been compacted: read the keys again, and watch from there.
   * The watch has ended.
   */
  onCompacted(): void
}

/** A watch and how far it has come. */
interface OpenWatch extends KeyWatch {
  from: number
}

/** All watches of a client, in one stream. They continue on the next connection. */
export class WatchStream {
  readonly #link: EtcdLink
  /** By the number that the stream knows it by. */
  readonly #watches = new Map<number, OpenWatch>()
  #lastId = 0
  #stream: GrpcCall | null = null
  #stopListening: (() => void) | null = null

  constructor(link: EtcdLink) {
    this.#link = link
  }

  add(watch: KeyWatch): () => void {
    const id = ++this.#lastId
    const { key, end, from } = watch
    const open: OpenWatch = {
      key,
      end,
      from,
      onEvents: (events) => watch.onEvents(events),
      onCompacted: () => watch.onCompacted(),
    }
    this.#watches.set(id, open)
    this.#stopListening ??= this.#link.onOpen(() => this.#open())
    if (this.#stream) this.#create(id, open)
    else this.#open()
    return () => this.#remove(id)
  }

  close(): void {
    this.#watches.clear()
    this.#stop()
  }

  #open(): void {
    if (this.#stream || this.#watches.size === 0) return
    const stream = this.#link.stream(WATCH, {
      onMessage: (message) => {
        if (this.#stream === stream) this.#onAnswer(readWatch(message))
      },
      onEnd: () => {
        if (this.#stream === stream) this.#stream = null
      },
    })
    // Without a connection the next one opens the stream.
    if (!stream) return this.#link.connect()
    this.#stream = stream
    for (const [id, watch] of this.#watches) this.#create(id, watch)
  }

  #create(id: number, { key, end, from }: OpenWatch): void {
    const request = encode((out) =>
      out.message(1, (inner) => {
        writeKey(inner, 1, key)
        if (end !== undefined) writeKey(inner, 2, end)
        inner.int(3, from).int(7, id)
      }),
    )
    this.#stream?.send(request)
  }

  #onAnswer({ watchId, isCreated, isCancelled, compactRevision, reason, events }: WatchAnswer): void {
    const watch = this.#watches.get(watchId)
    if (!watch) {
      // A watch that is refused has no number in the answers of some versions.
      if (isCreated && isCancelled) this.#leave(reason)
      return
    }
    const last = events.at(-1)
    if (last) {
      watch.from = last.kv.modRevision + 1
      watch.onEvents(events)
    }
    if (!isCancelled) return
    if (compactRevision > 0) {
      this.#watches.delete(watchId)
      return watch.onCompacted()
    }
    this.#leave(reason)
  }

  /** The server has no leader, or the token is too old. */
  #leave(reason: string): void {
    this.#stream?.cancel()
    this.#stream = null
    this.#link.leave(`etcd ended a watch: ${reason}`)
  }

  #remove(id: number): void {
    if (!this.#watches.delete(id)) return
    this.#stream?.send(encode((out) => out.message(2, (inner) => inner.int(1, id))))
    if (this.#watches.size === 0) this.#stop()
  }

  #stop(): void {
    this.#stopListening?.()
    this.#stopListening = null
    this.#stream?.cancel()
    this.#stream = null
  }
}
