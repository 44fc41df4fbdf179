import { HoldfastError } from '../../base/errors.js'
import type {
  Beat,
  Capabilities,
  ClaimRequest,
  ClientContext,
  Connection,
  InspectQuery,
  LineView,
  Origin,
  Push,
  StateChange,
  StateView,
  Store,
} from '../../contract/store.js'

export type Method = Exclude<keyof Connection, 'close'>

export interface Call {
  readonly method: Method
  /** What the call says: a claim's request, a pulse's beats, a resource. */
  readonly about: unknown
}

/** Does something before, after or instead of a call. */
export type Around = <T>(call: Call, go: () => Promise<T>) => Promise<T>

/** A store around a store: counts what passes, and lets a case fail, delay or lose any of it. */
export class InterceptedStore implements Store {
  readonly name: string
  readonly capabilities: Capabilities
  readonly calls: Call[] = []
  /** The most pulses that were on their way at once. */
  mostPulsesAtOnce = 0
  around: Around = (_call, go) => go()
  onPush: (news: Push, deliver: () => void) => void = (_news, deliver) => deliver()
  readonly #inner: Store
  #pulsesOnTheWay = 0
  readonly #clients: ClientContext[] = []
  readonly #answered: Call[] = []

  constructor(inner: Store) {
    this.#inner = inner
    this.name = inner.name
    this.capabilities = inner.capabilities
  }

  count(method: Method): number {
    return this.calls.filter((call) => call.method === method).length
  }

  /** How many calls of that method the client has had an answer to. */
  answered(method: Method): number {
    return this.#answered.filter((call) => call.method === method).length
  }

  /** Everything, or the given methods only, fails at once. */
  cut(...methods: Method[]): void {
    this.#disturb(methods, () => Promise.reject(unreachable()))
  }

  /** Everything, or the given methods only, never answers. */
  hang(...methods: Method[]): void {
    this.#disturb(methods, () => new Promise<never>(() => {}))
  }

  /** Back to normal. */
  heal(): void {
    this.around = (_call, go) => go()
    this.onPush = (_news, deliver) => deliver()
  }

  /** Tells the clients something that the store inside has not said. */
  tell(news: Push): void {
    for (const client of this.#clients) client.push(news)
  }

  connect(client: ClientContext): Connection {
    this.#clients.push(client)
    const push = (news: Push): void => this.onPush(news, () => client.push(news))
    const inner = this.#inner.connect({ id: client.id, space: client.space, push })
    const pass = <T>(method: Method, about: unknown, go: () => Promise<T>): Promise<T> =>
      this.#pass({ method, about }, go)
    return {
      claim: (request: ClaimRequest) => pass('claim', request, async () => inner.claim(request)),
      pulse: (beats: readonly Beat[]) => this.#countPulse(pass('pulse', beats, () => inner.pulse(beats))),
      release: (resource, id) => pass('release', resource, async () => inner.release(resource, id)),
      evict: (resource, fence) => pass('evict', resource, () => inner.evict(resource, fence)),
      cancel: (resource, id) => pass('cancel', id, () => inner.cancel(resource, id)),
      resize: (resource, declared, capacity) =>
        pass('resize', resource, () => inner.resize(resource, declared, capacity)),
      read: (key, watch) => pass('read', key, () => inner.read(key, watch)),
      write: (change: StateChange) => pass('write', change, () => inner.write(change)),
      states: (prefix) => this.#states(inner, prefix),
      inspect: (query) => this.#inspect(inner, query),
      close: () => inner.close(),
      ...(inner.origin ? { origin: this.#origin(inner.origin) } : {}),
    }
  }

  #origin(inner: Origin): Origin {
    return {
      get link() {
        return inner.link
      },
      run: () => this.#pass({ method: 'origin', about: undefined }, () => inner.run()),
    }
  }

  async *#states(inner: Connection, prefix: string): AsyncGenerator<StateView, void, void> {
    await this.#pass({ method: 'states', about: prefix }, async () => {})
    yield* inner.states(prefix)
  }

  async *#inspect(inner: Connection, query: InspectQuery): AsyncGenerator<LineView, void, void> {
    await this.#pass({ method: 'inspect', about: query }, async () => {})
    yield* inner.inspect(query)
  }

  async #pass<T>(call: Call, go: () => Promise<T>): Promise<T> {
    this.calls.push(call)
    const reply = await this.around(call, go)
    this.#answered.push(call)
    return reply
  }

  async #countPulse<T>(pulse: Promise<T>): Promise<T> {
    this.mostPulsesAtOnce = Math.max(this.mostPulsesAtOnce, ++this.#pulsesOnTheWay)
    try {
      return await pulse
    } finally {
      this.#pulsesOnTheWay--
    }
  }

  #disturb(methods: readonly Method[], instead: () => Promise<never>): void {
    this.around = (call, go) => (methods.length === 0 || methods.includes(call.method) ? instead() : go())
  }
}

/** What a store says that cannot be reached at the moment. */
function unreachable(): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', 'Cut off by the case', { retryable: true })
}

/** From now on the store does not tell whether others wait, as one that cannot know. */
export function sayNothing(store: InterceptedStore): void {
  store.onPush = (news, deliver) => {
    if (news.type !== 'wanted') deliver()
  }
  store.around = async (call, go) => {
    const reply: unknown = await go()
    const replies = (call.method === 'claim' ? [reply] : call.method === 'pulse' ? reply : []) as object[]
    for (const each of replies) Reflect.deleteProperty(each, 'isWanted')
    return reply as Awaited<ReturnType<typeof go>>
  }
}
