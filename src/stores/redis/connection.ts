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
} from '../../contract/store.js'
import { sendBeats } from './beats.js'
import { checkMaster, permissionFinding, tryLock } from './check.js'
import type { Listener } from './ears.js'
import { closed, explain, outOfReach } from './failures.js'
import { FirstRequests } from './first-requests.js'
import { evictScript } from './lua/evict.js'
import { resizeScript } from './lua/resize.js'
import type { Scripts } from './lua/script.js'
import { readScript, writeScript } from './lua/state.js'
import { viewScript } from './lua/view.js'
import { fromToken, Names, token } from './names.js'
import { claimReply, granted, releaseReply, robbedView, toUs } from './replies.js'
import type { Answer } from './turns.js'
import type { RedisUser } from './user.js'
import { lineView } from './view.js'
import { Watches } from './watches.js'

export class RedisConnection implements Connection {
  readonly #user: RedisUser
  readonly #context: ClientContext
  readonly #names: Names
  readonly #channel: string
  readonly #watches: Watches
  readonly #listener: Listener = {
    onMessage: (message) => this.#onMessage(message),
    onGap: () => this.#onGap(),
  }
  /** Resolves when the client's channel is heard for the first time, or with the failure of that. */
  #listening: Promise<unknown> | undefined
  #isHearing = false
  /** Something was answered before the channel was heard. */
  #mayHaveMissed = false
  readonly #firstRequests = new FirstRequests({
    ask: (request) => this.#ask(request),
    isHearing: () => this.#isHearing,
    heard: () => this.#listen(),
  })
  /** By id of a claim, the last attempt to make it that is not answered. */
  readonly #latest = new Map<string, object>()
  #closing: Promise<void> | undefined

  constructor(user: RedisUser, context: ClientContext) {
    this.#user = user
    this.#context = context
    this.#names = new Names(user.prefix, context.space)
    this.#channel = this.#names.clientChannel(context.id)
    this.#watches = new Watches(user.ears, this.#names, (key) => context.push({ type: 'state', key }))
    user.join()
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.#user.replicas ? this.#claimDurably(request) : this.#claim(request, () => true)
  }

  async #claimDurably(request: ClaimRequest): Promise<ClaimReply> {
    const attempt = {}
    const isLatest = (): boolean => this.#latest.get(request.id) === attempt
    this.#latest.set(request.id, attempt)
    try {
      return await this.#claim(request, isLatest)
    } finally {
      if (isLatest()) this.#latest.delete(request.id)
    }
  }

  async #claim(request: ClaimRequest, isLatest: () => boolean): Promise<ClaimReply> {
    this.#checkOpen()
    void this.#listen()
    // Without messages a waiter would learn of its grant by its pulse only: better to be told what is missing.
    if (this.#user.ears.refusal) throw this.#user.ears.refusal
    const { text, isSafe } = await (this.#firstRequests.areOver
      ? this.#ask(request)
      : this.#firstRequests.ask(request))
    const reply = claimReply(text)
    this.#mayHaveMissed ||= !this.#isHearing
    if (isSafe || reply.status !== 'granted') return reply
    // A later attempt under the same id has the same grant, and may have found enough replicas for it: it decides.
    if (isLatest()) await this.release(request.resource, request.id)
    throw outOfReach(`fewer than ${this.#user.replicas?.count} replicas have the grant; it was given back`)
  }

  #ask(request: ClaimRequest): Promise<Answer> {
    return this.#user.turns.submit(this.#names.line(request.resource), claimText(request, this.#channel))
  }

  async release(resource: string, id: string): Promise<boolean> {
    this.#checkOpen()
    this.#firstRequests.giveUp(id)
    const { driver } = this.#user.runner
    const losses = driver?.losses
    const words = `release ${token(id)} ${this.#channel}`
    const { wasThere, next } = releaseReply(await this.#hand(resource, words))
    if (next && !this.#closing) this.#context.push({ type: 'granted', resource, ...next })
    // A client may have sent it twice, and the first time may have been the one that found the claim: ask again, knowing that.
    if (wasThere || driver?.losses === losses) return wasThere
    this.#context.push({ type: 'gap' })
    throw outOfReach('the connection was lost meanwhile')
  }

  /** Whoever comes next may be this client, told by the answer alone: if that gets lost, all that wait here have to ask. */
  async #hand(resource: string, words: string): Promise<string> {
    try {
      return (await this.#user.turns.submit(this.#names.line(resource), words)).text
    } catch (error) {
      this.#context.push({ type: 'gap' })
      throw error
    }
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    if (beats.length === 0) {
      await this.#run(viewScript, this.#names.line(''), [])
      return []
    }
    try {
      return await sendBeats(this.#user, this.#names, beats)
    } catch (error) {
      throw explain(error)
    }
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const robbed = await this.#run(evictScript, this.#names.line(resource), [
      fence === null ? '-' : String(fence),
    ])
    return (robbed as unknown[]).map((each) => robbedView(String(each)))
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    await this.#run(resizeScript, this.#names.line(resource), [String(declared), String(capacity)])
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    this.#checkOpen()
    if (watch) {
      void this.#listen()
      await this.#watches.begin(key)
    }
    const [last, version, value] = (await this.#run(readScript, this.#names.state(key), [])) as unknown[]
    if (watch) this.#watches.read(key, Number(last))
    return stateValue(version, value)
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

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    this.#checkOpen()
    if (resource !== undefined) {
      const view = resource.startsWith(prefix) ? await this.#view(resource) : null
      if (view) yield view
      return
    }
    // SCAN may give a key more than once.
    const seen = new Set<string>()
    const driver = await this.#open()
    for await (const keys of driver.scan(this.#names.linePattern(prefix))) {
      const resources = keys.flatMap((key) => this.#names.resourceOf(key) ?? [])
      for (const view of await Promise.all(resources.map((each) => this.#view(each)))) {
        if (!view || view.claims.length === 0 || seen.has(view.resource)) continue
        seen.add(view.resource)
        yield view
      }
      this.#checkOpen()
    }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const found = new Set<string>()
    const driver = await this.#open()
    for await (const keys of driver.scan(this.#names.everyLinePattern))
      for (const key of keys) {
        const space = this.#names.spaceOf(key)
        if (space !== null) found.add(space)
      }
    return [...found]
  }

  unwatch(key: string): void {
    this.#watches.unwatch(key)
  }

  async check(): Promise<Finding[]> {
    const { env, replicas, ears } = this.#user
    const driver = await this.#open()
    try {
      const masters = await driver.masters()
      const findings = await Promise.all(
        masters.map((master) => checkMaster(master, replicas?.count ?? 0, env)),
      )
      return [...findings.flat(), permissionFinding((await tryLock(this, env.id())) ?? ears.refusal ?? null)]
    } catch (error) {
      throw explain(error)
    }
  }

  trouble(): string | null {
    return this.#user.runner.trouble
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // The server's word for it is not waited for: it may be silent.
    void this.#watches.end()
    void this.#user.ears.leave(this.#channel, this.#listener)
    await this.#user.leave()
  }

  /** Beside the first claim, not before it: that costs it no time. */
  #listen(): Promise<unknown> {
    this.#listening ??= this.#user.ears.listen(this.#channel, this.#listener).catch(() => {})
    return this.#listening
  }

  #onGap(): void {
    if (this.#isHearing || this.#mayHaveMissed) this.#context.push({ type: 'gap' })
    this.#isHearing = true
  }

  #onMessage(message: string): void {
    if (this.#closing) return
    const match = /^(?:granted (\d+)|(lost|wanted)) (\S+) (.*)$/s.exec(message)
    const resource = this.#names.resourceOf(match?.[4] ?? '')
    if (!match || resource === null) return
    const [, fence, type, ids = ''] = match
    if (fence !== undefined) this.#context.push({ type: 'granted', resource, ...granted(fence, ids) })
    else this.#context.push({ type: type as 'lost' | 'wanted', resource, id: fromToken(ids) })
  }

  async #view(resource: string): Promise<LineView | null> {
    const [time, hash] = (await this.#run(viewScript, this.#names.line(resource), [])) as [unknown, unknown[]]
    const fields = new Map<string, string>()
    for (let at = 0; at + 1 < hash.length; at += 2) fields.set(String(hash[at]), String(hash[at + 1]))
    return lineView(resource, Number(time), fields)
  }

  async #run(scripts: Scripts, key: string, args: readonly string[]): Promise<unknown> {
    this.#checkOpen()
    try {
      return await this.#user.runner.run(scripts, [key], args)
    } catch (error) {
      throw explain(error)
    }
  }

  async #open() {
    try {
      return await this.#user.runner.open()
    } catch (error) {
      throw explain(error)
    }
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

/** One claim in the words of the turn script. */
function claimText(request: ClaimRequest, channel: string): string {
  const { permits, capacity, floor, block, info } = request
  const times = `${toUs(request.leaseMs)} ${toUs(request.presenceMs)}`
  const maxHold = request.maxHoldMs === null ? 0 : toUs(request.maxHoldMs)
  const wanted = `${permits} ${capacity} ${maxHold} ${floor} ${block} ${channel} ${info}`
  return `${modeOf(request)} ${token(request.id)} ${times} ${wanted}`
}

function modeOf({ mode, adopts }: ClaimRequest): string {
  return adopts ? `${mode}/${token(adopts.id)}/${adopts.fence}` : mode
}

function stateValue(version: unknown, value: unknown): StateValue | null {
  return Number(version) === 0 ? null : { version: Number(version), value: String(value) }
}
