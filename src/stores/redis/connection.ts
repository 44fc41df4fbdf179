import { deferred } from '../../base/deferred.js'
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
import type { RedisBackend } from './backend.js'
import { sendBeats } from './beats.js'
import { messageFinding, permissionFinding, tryLock } from './check.js'
import { RedisClaims } from './claims.js'
import { ClientChannel } from './client-channel.js'
import { closed } from './failures.js'
import { checkMasters, inspectLines, listSpaces, listStates } from './inspection.js'
import { cancelScript } from './lua/cancel.js'
import { evictScript } from './lua/evict.js'
import { resizeScript } from './lua/resize.js'
import type { Scripts } from './lua/script.js'
import { readScript, writeScript } from './lua/state.js'
import { viewScript } from './lua/view.js'
import { RedisNames, token } from './names.js'
import { RedisOrigin } from './origin.js'
import { revokedView } from './replies.js'
import { RedisWatches } from './watches.js'

export class RedisConnection implements Connection {
  readonly origin: RedisOrigin
  readonly #backend: RedisBackend
  readonly #context: ClientContext
  readonly #names: RedisNames
  readonly #channel: ClientChannel
  readonly #claims: RedisClaims
  readonly #watches: RedisWatches
  #closing: Promise<void> | undefined

  constructor(backend: RedisBackend, context: ClientContext) {
    const push = (news: Push): void => {
      if (!this.#closing) context.push(news)
    }
    this.#backend = backend
    this.#context = context
    this.origin = new RedisOrigin(backend.runner, () => this.#checkOpen())
    this.#names = new RedisNames(backend.prefix, context.space)
    this.#channel = new ClientChannel(backend.subscription, this.#names, context.id, push)
    this.#claims = new RedisClaims(backend, this.#names, this.#channel, push)
    this.#watches = new RedisWatches(backend.subscription, this.#names, (key) => push({ type: 'state', key }))
    backend.join()
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.#closing ? Promise.reject(closed()) : this.#claims.claim(request)
  }

  release(resource: string, id: string): Promise<boolean> {
    return this.#closing ? Promise.reject(closed()) : this.#claims.release(resource, id)
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    if (beats.length === 0) {
      await this.#run(viewScript, this.#names.line(''), [])
      return []
    }
    try {
      return await sendBeats(this.#backend, this.#names, beats)
    } catch (error) {
      throw this.#backend.runner.failureOf(error)
    }
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const which = fence === null ? '-' : String(fence)
    const revoked = (await this.#run(evictScript, this.#names.line(resource), [which])) as unknown[]
    return revoked.map((each) => revokedView(String(each)))
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    const cancelled = String(await this.#run(cancelScript, this.#names.line(resource), [token(id)]))
    return cancelled === '' ? [] : [revokedView(cancelled)]
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    await this.#run(resizeScript, this.#names.line(resource), [String(declared), String(capacity)])
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    this.#checkOpen()
    if (watch) {
      void this.#channel.subscribe()
      await this.#watches.begin(key)
    }
    const [last, version, value] = (await this.#run(readScript, this.#names.state(key), [])) as unknown[]
    if (watch) this.#watches.read(key, Number(last))
    return stateValue(version, value)
  }

  unwatch(key: string): void {
    this.#watches.unwatch(key)
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    const [isWritten, version, current] = (await this.#run(writeScript, this.#names.state(key), [
      this.#names.stateChannel(key),
      String(expect ?? 0),
      String(retentionMs ?? 0),
      value === null ? 'delete' : 'set',
      value ?? '',
    ])) as unknown[]
    return { written: Number(isWritten) === 1, current: stateValue(version, current) }
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    this.#checkOpen()
    const read = (key: string): Promise<StateValue | null> => this.read(key, false)
    yield* listStates(this.#backend, this.#names, prefix, read)
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    this.#checkOpen()
    yield* inspectLines(this.#backend, this.#names, query, () => this.#checkOpen())
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    return listSpaces(this.#backend, this.#names)
  }

  async check(): Promise<Finding[]> {
    const findings = await checkMasters(this.#backend)
    const { env, subscription } = this.#backend
    const heard = deferred<void>()
    const push = (news: Push): void => {
      if (news.type === 'lost') heard.resolve()
    }
    const trial = new RedisConnection(this.#backend, { space: this.#context.space, id: env.id(), push })
    try {
      const failure = (await tryLock(trial, env.id())) ?? subscription.refusal ?? null
      findings.push(permissionFinding(failure))
      if (failure === null) findings.push(await messageFinding(heard.promise, env))
    } finally {
      await trial.close()
    }
    return findings
  }

  trouble(): string | null {
    return this.#backend.runner.trouble
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    void this.#watches.end()
    this.#channel.leave()
    await this.#backend.leave()
  }

  #run(scripts: Scripts, key: string, args: readonly string[]): Promise<unknown> {
    return this.#closing ? Promise.reject(closed()) : this.#backend.run(scripts, key, args)
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

function stateValue(version: unknown, value: unknown): StateValue | null {
  return Number(version) === 0 ? null : { version: Number(version), value: String(value) }
}
