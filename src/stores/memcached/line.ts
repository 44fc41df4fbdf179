import type { Push } from '../../contract/store.js'
import type { MetaListener, MetaReply } from '../../drivers/memcached/index.js'
import type { EmbeddedLines } from '../embedded/lines.js'
import { explain, LineFullError, NotOursError } from './failures.js'
import { decodeLine, EMPTY_LINE, encodeHead, encodeLine, type LineImage } from './line-item.js'
import { type MemcachedNode, newCas } from './node.js'

/** A client of this store value. */
export interface LocalMember {
  readonly id: string
  onNews(news: Push): void
}

/** A claim of a client of this store value, as it was last seen in its line. */
export interface OwnClaim {
  readonly member: LocalMember
  isHeld: boolean
  /** When its client knows that it has ended, on the monotonic clock. */
  lapsesAt: number
}

interface Sight {
  readonly epoch: number
  /** 0: there was no item. */
  cas: number
  readonly image: LineImage
}

/** One line: where its item is, and what this process last saw of it. */
export class MemcachedLine {
  readonly key: string
  readonly node: MemcachedNode
  readonly resource: string
  readonly #head: string
  readonly #retentionMs: number
  /** By id. */
  readonly own = new Map<string, OwnClaim>()
  /** The calls that wait for the batch under way; undefined: none is under way. */
  queue: LineCall[] | undefined
  /** Counts what this process does in the line: a poll that overlaps with it is void. */
  turn = 0
  /** When a claim was last granted here, or one of ours began to wait. */
  movedAt = 0
  lastFence = 0
  /** The end of the last claim at the front whose lapse was noticed. */
  lapsedAt = 0
  #seen: Sight | undefined
  /** What the last write puts there. */
  #sent: Sight | undefined

  constructor(options: LineOptions) {
    const { key, node, space, resource, retentionMs } = options
    this.key = key
    this.node = node
    this.resource = resource
    this.#head = encodeHead(space, resource)
    this.#retentionMs = retentionMs
  }

  /** The line as it was last seen through the present connection; undefined: not known. */
  get image(): LineImage | undefined {
    return this.#seen?.epoch === this.node.epoch ? this.#seen.image : undefined
  }

  get cas(): number | undefined {
    return this.#seen?.epoch === this.node.epoch ? this.#seen.cas : undefined
  }

  get isIdle(): boolean {
    return this.queue === undefined && this.own.size === 0
  }

  forget(): void {
    this.#seen = undefined
  }

  /** Reads the item; `see` makes it the known one. */
  async read(): Promise<Sight> {
    const { epoch } = this.node
    const { status, cas, value } = await this.node.get(this.key, 'c v').catch(rethrow)
    if (status !== 'VA') return { epoch, cas: 0, image: EMPTY_LINE }
    const image = decodeLine(value)
    if (!image) throw new NotOursError(this.key)
    return { epoch, cas, image }
  }

  see(sight: Sight): LineImage {
    this.#seen = sight
    return sight.image
  }

  /** Replaces the image that is known. The listener gives the reply to `wrote`. */
  write(image: LineImage, listener: MetaListener): void {
    const { epoch, mostBytes } = this.node
    const { at, last, pin, rows } = image
    const value = encodeLine(this.#head, image)
    // An item that is too large would not only be refused: the server drops the old one.
    if (value.length > mostBytes) throw new LineFullError(this.resource, rows.size, mostBytes, true)
    const expected = this.cas ?? 0
    // Unless it is written, nothing is known of it.
    this.forget()
    this.#sent = { epoch, cas: 0, image: { at, last, pin, rows, bytes: value.length } }
    this.node.send(this.key, value, expected, this.#ttlMs(image), listener)
  }

  /** The reply to the last write. false: another client came between. */
  wrote(reply: MetaReply): boolean {
    const cas = newCas(reply)
    if (cas === 0 || !this.#sent) return false
    this.#sent.cas = cas
    this.#seen = this.#sent
    return true
  }

  /** Longer than any claim, and long enough for fences to go on; null: for good. */
  #ttlMs({ at, pin, rows }: LineImage): number | null {
    if (pin) return null
    let end = at
    for (const { expires } of rows.values()) end = Math.max(end, expires)
    return end - at + this.#retentionMs
  }
}

export interface LineOptions {
  readonly key: string
  readonly node: MemcachedNode
  readonly space: string
  readonly resource: string
  readonly retentionMs: number
}

/** A call that waits for its batch. */
export interface LineCall {
  readonly submittedAt: number
  run(calls: EmbeddedLines): unknown
  resolve(reply: unknown): void
  reject(error: unknown): void
}

function rethrow(error: unknown): never {
  throw explain(error)
}
