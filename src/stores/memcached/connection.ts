import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  Push,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import type { EmbeddedLines } from '../embedded/lines.js'
import { groupByLine } from '../shared/beats.js'
import type { MemcachedBackend } from './backend.js'
import { checkNode } from './check.js'
import { closed, explain, NotOursError } from './failures.js'
import type { LocalMember, MemcachedLine } from './line.js'
import { LineDraft } from './line-draft.js'
import { decodeLine, type LineImage } from './line-item.js'
import { itemsOf } from './listing.js'
import { currentValue, decodeState } from './state-item.js'
import type { StateWatcher } from './state-watches.js'

export class MemcachedConnection implements Connection, LocalMember, StateWatcher {
  readonly id: string
  readonly #backend: MemcachedBackend
  readonly #context: ClientContext
  #isClosed = false

  constructor(backend: MemcachedBackend, context: ClientContext) {
    this.id = context.id
    this.#backend = backend
    this.#context = context
    backend.join(this)
  }

  onNews(news: Push): void {
    if (!this.#isClosed) this.#context.push(news)
  }

  onState(key: string): void {
    this.onNews({ type: 'state', key })
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return new Promise((resolve, reject) => {
      const line = this.#line(request.resource)
      const onReply = (reply: ClaimReply): void => {
        if (reply.status !== 'refused' && !this.#isClosed) this.#backend.follow(line, request.id, this)
        resolve(reply)
      }
      this.#backend.submit(line, (calls) => calls.claim(this.id, request), onReply, reject)
    })
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    if (beats.length === 0) {
      await Promise.all(this.#backend.nodes.map(({ server }) => server.meta('mn\r\n'))).catch(rethrow)
      return []
    }
    const replies: BeatReply[] = []
    const groups = groupByLine(beats).map(async ({ resource, indexes }) => {
      const theirs = indexes.flatMap((index) => beats[index] ?? [])
      const answers = await this.#call(resource, (calls) => calls.pulse(theirs)).catch(noAnswers)
      for (const [place, index] of indexes.entries()) replies[index] = answers[place] ?? { status: 'gone' }
    })
    await Promise.all(groups)
    return replies
  }

  release(resource: string, id: string): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const line = this.#line(resource)
      this.#backend.unfollow(line, id)
      this.#backend.submit(line, (calls) => calls.release(resource, id), resolve, reject)
    })
  }

  letGo(resource: string, id: string): void {
    this.#backend.unfollow(this.#line(resource), id)
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#call(resource, (calls) => calls.evict(resource, fence))
  }

  cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#call(resource, (calls) => calls.cancel(resource, id))
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#call(resource, (calls) => calls.resize(resource, declared, capacity))
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    this.#checkOpen()
    const { states, watches } = this.#backend
    const { value, cas } = await states.read(this.#space, key)
    if (watch && !this.#isClosed) {
      const { itemKey, node } = states.place(this.#space, key)
      watches.add(itemKey, node, key, cas, this)
    }
    return value
  }

  unwatch(key: string): void {
    const { states, watches } = this.#backend
    watches.remove(states.place(this.#space, key).itemKey, this)
  }

  async write(change: StateChange): Promise<StateOutcome> {
    this.#checkOpen()
    const { states, watches } = this.#backend
    const { hasChanged, ...outcome } = await states.write(this.#space, change)
    if (hasChanged) watches.changed(states.place(this.#space, change.key).itemKey)
    return outcome
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    this.#checkOpen()
    const { nodes, keys, env } = this.#backend
    for (const node of nodes)
      for await (const item of itemsOf(node, keys.start('s', this.#space), env)) {
        const state = decodeState(item)
        const current = currentValue(state, node.now())
        if (state && current && state.key.startsWith(prefix)) yield { key: state.key, ...current }
      }
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    this.#checkOpen()
    if (resource !== undefined) {
      const line = this.#line(resource)
      if (!line.node.isReady) await line.node.ready()
      const view = viewOf(resource, (await line.read()).image, line.node.now())
      if (view && resource.startsWith(prefix)) yield view
      return
    }
    const { nodes, keys, env } = this.#backend
    for (const node of nodes) {
      if (!node.isReady) await node.ready()
      for await (const item of itemsOf(node, keys.start('l', this.#space), env)) {
        const line = decodeLine(item)
        if (!line?.resource.startsWith(prefix)) continue
        const view = viewOf(line.resource, line, node.now())
        if (view && view.claims.length > 0) yield view
      }
    }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const { nodes, keys, env } = this.#backend
    const found = new Set<string>()
    for (const node of nodes)
      for await (const item of itemsOf(node, keys.startOfAll('l'), env)) {
        const line = decodeLine(item)
        if (line) found.add(line.space)
      }
    return [...found]
  }

  async check(): Promise<Finding[]> {
    this.#checkOpen()
    const { nodes, env } = this.#backend
    const findings = await Promise.all(nodes.map((node) => checkNode(node, env, nodes.length > 1)))
    return findings.flat()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#backend.watches.removeAll(this)
    this.#backend.leave(this)
  }

  get #space(): string {
    return this.#context.space
  }

  #call<T>(resource: string, run: (calls: EmbeddedLines) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#backend.submit(this.#line(resource), run, resolve, reject)
    })
  }

  #line(resource: string): MemcachedLine {
    this.#checkOpen()
    return this.#backend.line(this.#space, resource)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw closed()
  }
}

function viewOf(resource: string, image: LineImage, now: number): LineView | null {
  return new LineDraft(image, now).calls.view(resource)
}

/** Another program has overwritten the item: its claims are gone, those of other lines are not. */
function noAnswers(error: unknown): BeatReply[] {
  if (error instanceof NotOursError) return []
  throw error
}

function rethrow(error: unknown): never {
  throw explain(error)
}
