import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { type Env, systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { BeatReply, ClaimReply, GrantedPush, LineView, Store } from '../../contract/store.js'
import * as model from '../model.js'
import { type VirtualProcess, VirtualWorld } from '../virtual-env.js'
import { callOf } from './calls.js'
import { type HistoryClient, HistoryClients, type Patience } from './clients.js'
import { CLIENTS, type Command, RESOURCES } from './commands.js'
import { assertSame, plain, show } from './compare.js'
import { Ledger } from './ledger.js'
import type { HistoryScene } from './scene.js'

export interface RunOptions {
  makeStore(env: Env): Promise<Store> | Store
  clock: 'injected' | 'server'
  fences: 'store' | 'resource' | 'group'
  patience: Patience
}

/**
 * Runs one history against a new store and the model, and fails at the first step where they
 * differ.
 */
export async function runHistory(commands: readonly Command[], options: RunOptions): Promise<void> {
  const world = new VirtualWorld({ seed: 1, wallStartMs: 1_000_000 })
  const virtual = world.env({ name: 'store', offsetMs: 0 })
  const store = await options.makeStore(options.clock === 'injected' ? virtual : systemEnv)
  const history = new History(store, world, virtual, options)
  try {
    for (const command of commands) await history.step(command)
    await history.end()
  } catch (error) {
    // Without a cause: its text is in the story, and reporters would print it all once more.
    throw new Error(history.tell(error))
  } finally {
    await history.close()
  }
}

class History {
  readonly #options: RunOptions
  readonly #world: VirtualWorld
  readonly #clients: HistoryClients
  readonly #ledger: Ledger
  readonly #clock: VirtualProcess
  readonly #asked: HistoryScene['asked'] = []
  readonly #log: string[] = []
  readonly #takesFences: boolean
  #model = model.emptyModel

  constructor(store: Store, world: VirtualWorld, clock: VirtualProcess, options: RunOptions) {
    this.#options = options
    this.#world = world
    this.#clock = clock
    this.#clients = new HistoryClients(store, CLIENTS, options.patience)
    this.#ledger = new Ledger(options.fences)
    this.#takesFences = store.capabilities.takesFences === true
  }

  async step(command: Command): Promise<void> {
    if (command.type === 'advance') return this.#advance(command)
    if (command.type === 'close') return this.#closeClient(command.client)
    if (command.type === 'inspect') return this.#inspect(command)
    const call = callOf(command, this.#scene())
    if (!call) return
    this.#note(call.client, `${call.text} ${show(call.with)}`)
    const outcome = call.toModel(this.#model, this.#clock.now())
    const reply = await call.toStore(call.client.connection)
    this.#log.push(`      → ${show(reply)}`)
    this.#model = outcome.model
    await this.#compare(reply, outcome)
    for (const [index, { resource, id, fences }] of (call.about ?? []).entries()) {
      const answer = [reply].flat()[index] as ClaimReply | BeatReply
      if (answer.status === 'waiting') this.#ledger.promise(resource, id, answer.grantsAbove)
      if (answer.status === 'held' && fences) this.#ledger.checkNamed(resource, fences.first, answer)
    }
  }

  /** A push that nobody expected may come a little later than the call that caused it. */
  async end(): Promise<void> {
    await setImmediate()
    this.#log.push('after the last call')
    await this.#compare(undefined, { model: this.#model, reply: undefined, pushes: [] })
  }

  close(): Promise<void> {
    return this.#clients.close()
  }

  /** The story so far, for people, and how it ended. */
  tell(error: unknown): string {
    return `${this.#log.join('\n')}\n\n${error instanceof Error ? error.message : String(error)}`
  }

  async #advance({ to, ms, index }: Extract<Command, { type: 'advance' }>): Promise<void> {
    const { claims, values } = this.#model
    const deadlines = [...claims, ...values].map((each) => each.deadline).filter(Number.isFinite)
    const deadline = deadlines[index % Math.max(1, deadlines.length)]
    const now = this.#clock.now()
    const wanted = to === 'deadline' && deadline !== undefined ? deadline + ms : now + Math.abs(ms)
    if (wanted <= now) return
    await this.#world.run(this.#world.timeMs + wanted - now)
    this.#log.push(`${wanted - now} ms pass: it is ${wanted}`)
    await this.#compare(undefined, { model: this.#model, reply: undefined, pushes: [] })
  }

  async #closeClient(index: number): Promise<void> {
    const client = this.#clients.at(index)
    this.#note(client, 'close')
    await client.connection.close()
    for (const call of [client.connection.pulse([]), linesOf(client.connection.inspect({ prefix: '' }))])
      await assert.rejects(call, isClosedError, 'a call after close must fail with CLOSED')
    this.#clients.replace(index)
    await this.#compare(undefined, { model: this.#model, reply: undefined, pushes: [] })
  }

  async #inspect(command: Extract<Command, { type: 'inspect' }>): Promise<void> {
    const { prefix, resource } = command
    const client = this.#clients.at(command.client)
    this.#note(client, `inspect '${prefix}' ${resource ?? ''}`)
    const query = resource === undefined ? { prefix } : { prefix, resource }
    const reply = await linesOf(client.connection.inspect(query))
    const lines =
      resource === undefined
        ? this.#expectedLines()
        : [model.view(this.#model, this.#clock.now(), resource)].filter((line) => line !== null)
    const expected = lines.filter((line) => line.resource.startsWith(prefix))
    await this.#compare(reply, { model: this.#model, reply: expected, pushes: [] })
  }

  async #compare(reply: unknown, outcome: model.Outcome<unknown>): Promise<void> {
    const { clock } = this.#options
    const pushes = this.#expectedPushes(outcome.pushes)
    await this.#clients.told(new Map([...pushes].map(([client, news]) => [client, news.length])))
    const lines = await linesOf(this.#clients.inspector.inspect({ prefix: '' }))
    const news = this.#clients.takeNews()
    const actual = plain({ reply, pushes: news, lines }, clock)
    const expected = plain({ reply: outcome.reply, pushes, lines: this.#expectedLines() }, clock)
    this.#ledger.learn(expected, actual)
    assertSame(actual, this.#ledger.translate(expected))
    this.#ledger.check(this.#model.given, this.#clock.wallMs())
    for (const push of [...news.values()].flat()) if (push.type === 'granted') this.#noteHeirs(push)
  }

  /**
   * A store may name any heirs that no other claim can overtake. No other claim gets their fences.
   */
  #noteHeirs({ resource, id, fence, heirs = [] }: GrantedPush): void {
    const line = this.#model.claims.filter(({ request }) => request.resource === resource)
    const first = line.findIndex(({ request }) => request.id === id)
    for (const [index, heir] of heirs.entries()) {
      const [before, claim] = [line[first + index], line[first + 1 + index]]
      const isNext = claim?.request.id === heir && claim.client === before?.client && claim.fence === null
      const { permits, block, floor } = claim?.request ?? { permits: 0, block: 0, floor: 0 }
      const wantsThat =
        permits === claim?.capacity && block === 1 && before?.request.block === 1 && floor <= fence
      // The same call may have taken the hold away again.
      assert(first < 0 || (isNext && wantsThat), `${heir} was named as an heir of ${id}`)
    }
    this.#ledger.keep(resource, fence + heirs.length)
  }

  /** By client; those that have closed hear nothing. */
  #expectedPushes(told: readonly model.Told[]): Map<string, model.Told['news'][]> {
    const pushes = this.#clients.all.map(({ id }) => [id, [] as model.Told['news'][]] as const)
    const byClient = new Map(pushes)
    for (const { client, news } of told) byClient.get(client)?.push(news)
    return byClient
  }

  #expectedLines(): LineView[] {
    const lines = RESOURCES.map((resource) => model.view(this.#model, this.#clock.now(), resource))
    return lines.filter((line) => line !== null).filter((line) => line.claims.length > 0)
  }

  #scene(): HistoryScene {
    return {
      model: this.#model,
      ledger: this.#ledger,
      asked: this.#asked,
      now: this.#clock.now(),
      wallMs: this.#clock.wallMs(),
      takesFences: this.#takesFences,
      client: (index) => this.#clients.at(index),
    }
  }

  #note(client: HistoryClient, text: string): void {
    this.#log.push(`${client.id.slice(0, client.id.indexOf('-'))} ${text}`)
  }
}

function isClosedError(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'CLOSED'
}

async function linesOf(lines: AsyncIterable<LineView>): Promise<LineView[]> {
  const found: LineView[] = []
  for await (const line of lines) found.push(line)
  return found.sort((a, b) => (a.resource < b.resource ? -1 : 1))
}
