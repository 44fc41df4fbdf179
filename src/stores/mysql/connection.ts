import { EXCLUSIVE } from '../../contract/constants.js'
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
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import type { MysqlBackend } from './backend.js'
import { checkServer } from './check.js'
import type { ClaimNews, MysqlLocalClient } from './clients.js'
import { closed } from './failures.js'
import {
  claimValues,
  fastClaim,
  fastRelease,
  type MysqlAnswer,
  type MysqlCall,
  releaseValues,
} from './line-calls.js'
import { MysqlPoller } from './poller.js'
import { MysqlPulse, noteReply, type Placed, withoutPlace } from './pulse.js'
import { bytes, fromHex, keyOf, micros, number, toBytes } from './values.js'
import { claimView, linesOf } from './views.js'

/** How many lines or states a listing reads at a time. */
const PAGE = 100

export class MysqlConnection implements Connection, MysqlLocalClient {
  readonly #backend: MysqlBackend
  readonly #context: ClientContext
  readonly #poller: MysqlPoller
  readonly #pulse: MysqlPulse
  /** By line and id: the claims under way, with the news of a grant that came before the answer. */
  readonly #joining = new Map<string, ClaimNews | null>()
  #closing: Promise<void> | undefined

  constructor(backend: MysqlBackend, context: ClientContext) {
    this.#backend = backend
    this.#context = context
    this.#poller = new MysqlPoller({
      env: backend.env,
      runner: backend.runner,
      client: context.id,
      push: (news) => context.push(news),
    })
    this.#pulse = new MysqlPulse(backend, this.#poller, context)
    backend.join(this)
  }

  get id(): string {
    return this.#context.id
  }

  get space(): string {
    return this.#context.space
  }

  onNews(news: ClaimNews): void {
    const line = keyOf(this.space, news.resource)
    // A claim that joined and was promoted in the same batch does not know yet that it waits.
    const isEarly = this.#joining.has(line + news.id) && !this.#poller.claims.has(line, news.id)
    if (isEarly && news.type === 'granted') this.#joining.set(line + news.id, news)
    else this.#tell(line, news)
  }

  /** The poller may have seen the same a moment ago. */
  #tell(line: string, news: ClaimNews): void {
    const { id } = news
    const { claims } = this.#poller
    const isNew = news.type === 'granted' ? claims.promote(line, id, news.fence) : claims.forget(line, id)
    if (isNew && !this.#closing) this.#context.push(news)
  }

  onState(key: string): void {
    if (this.#poller.unwatch(keyOf(this.space, key))) this.#context.push({ type: 'state', key })
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    this.#backend.maintain()
    const { resource, id } = request
    const line = keyOf(this.space, resource)
    const values = claimValues(request, this.id)
    const fastPath = this.#poller.claims.isIn(line) ? undefined : fastClaim(line, request, this.id)
    this.#joining.set(line + id, null)
    try {
      const reply = await this.#submit<Placed<ClaimReply>>(line, resource, values, fastPath)
      noteReply(this.#poller, resource, line, id, reply, request.permits === EXCLUSIVE)
      const news = this.#joining.get(line + id)
      if (news) this.#tell(line, news)
      return withoutPlace(reply)
    } finally {
      this.#joining.delete(line + id)
    }
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    if (beats.length > 0) return this.#pulse.send(beats)
    await this.#call('read', [bytes(keyOf(this.space, ''))])
    return []
  }

  async release(resource: string, id: string): Promise<boolean> {
    const line = keyOf(this.space, resource)
    const { claims } = this.#poller
    // A claim that had to wait is not alone in its line.
    const fastPath = claims.wasQueued(line, id) ? undefined : fastRelease(line, id)
    claims.forget(line, id)
    try {
      return await this.#submit<boolean>(line, resource, releaseValues(id), fastPath)
    } finally {
      this.#poller.left(line)
    }
  }

  letGo(resource: string, id: string): void {
    const line = keyOf(this.space, resource)
    this.#poller.claims.forget(line, id)
    this.#poller.left(line)
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const values = [bytes(keyOf(this.space, resource)), toBytes(this.id), number(fence)]
    return (await this.#change<ClaimView[]>('evict', resource, values)).map(claimView)
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    const values = [bytes(keyOf(this.space, resource)), toBytes(this.id), toBytes(id)]
    return (await this.#change<ClaimView[]>('cancel', resource, values)).map(claimView)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    const [line = '', ...name] = this.#name(resource)
    const values = [line, toBytes(this.id), ...name, number(declared), number(capacity)]
    await this.#change<null>('resize', resource, values)
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const state = keyOf(this.space, key)
    const [found = [0, 0, '']] = await this.#call('read', [bytes(state)])
    const [last, version, value] = found as [number, number, string]
    if (watch) this.#poller.watch(state, key, last)
    return stateValue(version, value)
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    const change = [number(expect), value === null ? 'NULL' : toBytes(value), micros(retentionMs)]
    const [answer] = await this.#call('write', [...this.#name(key), ...change])
    const [written, hasChanged, version, current] = answer as [boolean, boolean, number, string]
    if (hasChanged) this.#backend.clients.tellState(this.space, key)
    return { written, current: stateValue(version, current) }
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    for (let after = '', count = PAGE; count === PAGE; ) {
      const values = [toBytes(this.space), toBytes(prefix), bytes(after), number(PAGE)]
      const page = (await this.#call('states', values)) as [string, number, string][]
      for (const [name, version, value] of page) {
        const state = stateValue(version, value)
        if (state) yield { key: fromHex(name), ...state }
        after = name
      }
      count = page.length
    }
  }

  unwatch(key: string): void {
    this.#poller.unwatch(keyOf(this.space, key))
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    if (resource !== undefined) {
      const found = await this.#view(bytes(keyOf(this.space, resource)), prefix, '')
      // A pinned capacity is shown even where nobody is in the line.
      const isMeant = resource.startsWith(prefix)
      for (const line of found)
        if (isMeant && (line.declared !== undefined || line.claims.length > 0)) yield line
      return
    }
    for (let page: LineView[] = [], after = ''; ; after = page.at(-1)?.resource ?? '') {
      page = await this.#view('NULL', prefix, after)
      for (const line of page) if (line.claims.length > 0) yield line
      if (page.length < PAGE) return
    }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const { runner } = this.#backend
    const found = await runner.query(`SELECT DISTINCT HEX(space) FROM ${runner.names.line}`)
    return found.map(fromHex)
  }

  async check(): Promise<Finding[]> {
    this.#checkOpen()
    return checkServer(this.#backend.runner, this.#backend.env)
  }

  close(): Promise<void> {
    this.#poller.close()
    this.#closing ??= this.#backend.leave(this)
    return this.#closing
  }

  async #view(line: string, prefix: string, after: string): Promise<LineView[]> {
    const values = [line, toBytes(this.space), toBytes(prefix), toBytes(after), number(PAGE)]
    return linesOf(await this.#call('view', values))
  }

  /** The key of a line or state, and the name that it stands for. */
  #name(name: string): string[] {
    return [bytes(keyOf(this.space, name)), toBytes(this.space), toBytes(name)]
  }

  #submit<T>(
    line: string,
    resource: string,
    values: MysqlCall['values'],
    fastPath: MysqlCall['fastPath'],
  ): Promise<T> {
    this.#checkOpen()
    const call = { line, space: this.space, resource, client: this.id, values, fastPath }
    return this.#backend.submit(call) as Promise<T>
  }

  /**
   * Calls a routine that may grant or revoke other claims, and tells the clients of this process.
   */
  async #change<T>(routine: string, resource: string, values: readonly string[]): Promise<T> {
    const [answer] = await this.#call(routine, values)
    const { reply, news } = answer as MysqlAnswer<T>
    this.#backend.clients.tell(this.space, news, () => resource)
    return reply
  }

  async #call(routine: string, values: readonly string[]): Promise<unknown[]> {
    this.#checkOpen()
    const rows = await this.#backend.runner.call(routine, [...values, this.#backend.at])
    return rows.map((row) => JSON.parse(row))
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

function stateValue(version: number, value: string): StateValue | null {
  return version === 0 ? null : { version, value: fromHex(value) }
}
