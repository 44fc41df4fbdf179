import { detailOf, emptyLine, type SeenLine, summaryOf } from './lines.js'
import type { Poller, PollListener } from './poller.js'
import { mostContendedFirst } from './resource-list.js'
import type { ResourceChanges, ResourceDetail } from './shapes.js'
import { type EventStream, encodeEvent } from './streams.js'
import { totalsOf } from './totals.js'

/** The most resources of the first message of a stream. */
const FIRST_MESSAGE = 1000
/** The waiters of a resource that an event shows. */
const FIRST_WAITERS = 200

/** Sends what the poller of a space finds to the streams that watch it. Encodes each event once. */
export class SpaceFeed implements PollListener {
  readonly #poller: Poller
  readonly #streams = new Set<EventStream>()
  #unwatch: (() => void) | null = null
  /** The whole list, encoded, until the next look. */
  #whole: { readonly lines: unknown; readonly event: Uint8Array } | null = null

  constructor(poller: Poller) {
    this.#poller = poller
  }

  get isEmpty(): boolean {
    return this.#streams.size === 0
  }

  /** It gets the whole first, and differences from then on. */
  add(stream: EventStream): void {
    this.#streams.add(stream)
    this.#unwatch ??= this.#poller.watch(this)
    this.#poller.fresh().then(
      () => stream.isStarted || this.sendAll(stream),
      () => stream.send(encodeEvent('trouble', { message: this.#poller.trouble ?? '' })),
    )
  }

  remove(stream: EventStream): void {
    this.#streams.delete(stream)
    if (!this.isEmpty) return
    this.#unwatch?.()
    this.#unwatch = null
    this.#whole = null
  }

  /** Sends the whole instead of differences. */
  sendAll(stream: EventStream): void {
    if (!this.#streams.has(stream)) return
    stream.isStarted = true
    const { resource } = stream
    const { trouble } = this.#poller
    stream.send(
      this.#wholeEvent(),
      ...(resource === null ? [] : [encodeEvent('resource', this.#detail(resource))]),
      // A list says that the store is fine, unless this follows.
      ...(trouble === null ? [] : [encodeEvent('trouble', { message: trouble })]),
    )
  }

  onChange(changed: readonly SeenLine[], gone: readonly string[]): void {
    const nowMs = this.#poller.asOfMs
    const data: ResourceChanges = {
      isAll: false,
      changed: changed.map((line) => summaryOf(line, nowMs)),
      gone: [...gone],
      ...totalsOf(this.#poller),
    }
    const event = encodeEvent('resources', data)
    const isNews = new Set([...changed.map(({ name }) => name), ...gone])
    const details = new Map<string, Uint8Array>()
    for (const stream of [...this.#streams]) {
      if (!stream.isStarted) this.sendAll(stream)
      else {
        const { resource } = stream
        const isShown = resource !== null && isNews.has(resource)
        stream.send(event, ...(isShown ? [this.#detailEvent(resource, details)] : []))
      }
    }
  }

  onTrouble(message: string): void {
    this.#send(encodeEvent('trouble', { message }))
  }

  onFine(): void {
    this.#send(encodeEvent('fine', {}))
  }

  #send(event: Uint8Array): void {
    for (const stream of [...this.#streams]) stream.send(event)
  }

  #detailEvent(name: string, encoded: Map<string, Uint8Array>): Uint8Array {
    const event = encoded.get(name) ?? encodeEvent('resource', this.#detail(name))
    encoded.set(name, event)
    return event
  }

  #wholeEvent(): Uint8Array {
    const { lines, asOfMs } = this.#poller
    if (this.#whole?.lines === lines) return this.#whole.event
    const first = mostContendedFirst(lines.values()).slice(0, FIRST_MESSAGE)
    const data: ResourceChanges = {
      isAll: true,
      changed: first.map((line) => summaryOf(line, asOfMs)),
      gone: [],
      ...totalsOf(this.#poller),
    }
    this.#whole = { lines, event: encodeEvent('resources', data) }
    return this.#whole.event
  }

  #detail(name: string): ResourceDetail {
    const { lines, asOfMs, timeline } = this.#poller
    const line = lines.get(name)
    const detail = detailOf(line ?? emptyLine(name), asOfMs, { offset: 0, limit: FIRST_WAITERS })
    return { ...detail, timeline: timeline.of(name, line, asOfMs) }
  }
}
