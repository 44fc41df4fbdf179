import type { Env } from '../../base/env.js'
import { chooseServer, type MemcachedServer } from '../../drivers/memcached/index.js'
import type { EmbeddedLines } from '../embedded/lines.js'
import { ItemKeys } from './keys.js'
import { type LocalMember, MemcachedLine } from './line.js'
import { LineCalls } from './line-calls.js'
import { MemcachedNode } from './node.js'
import { OwnClaims } from './own-claims.js'
import { LinePoller } from './poller.js'
import { StateWatches } from './state-watches.js'
import { MemcachedStates } from './states.js'

/** So many remembered lines are kept when those without claims of ours are forgotten. */
const KEPT_LINES = 5000

export interface MemcachedBackendOptions {
  readonly servers: readonly ((onLoss: () => void) => MemcachedServer)[]
  readonly prefix: string
  readonly retentionMs: number
  readonly env: Env
  /** null: the servers' clocks. A test gives its own. */
  readonly clock: Env | null
}

/** What the clients of one store value share: servers, remembered lines, polls. */
export class MemcachedBackend {
  readonly env: Env
  readonly nodes: readonly MemcachedNode[]
  readonly keys: ItemKeys
  readonly states: MemcachedStates
  readonly watches: StateWatches
  readonly claims: OwnClaims
  readonly #options: MemcachedBackendOptions
  readonly #names: readonly string[]
  readonly #calls: LineCalls
  readonly #poller: LinePoller
  /** By space and resource. */
  readonly #lines = new Map<string, Map<string, MemcachedLine>>()
  #lineCount = 0
  /** With so many lines, the next new one has idle ones forgotten. */
  #mostLines = 2 * KEPT_LINES

  constructor(options: MemcachedBackendOptions) {
    const { env, retentionMs } = options
    this.#options = options
    this.env = env
    this.nodes = options.servers.map((server) => new MemcachedNode(server, env, options.clock))
    this.#names = this.nodes.map(({ server }) => server.name)
    this.keys = new ItemKeys(options.prefix)
    this.states = new MemcachedStates({ keys: this.keys, retentionMs, nodeOf: (key) => this.#nodeOf(key) })
    this.watches = new StateWatches(env)
    this.claims = new OwnClaims(env)
    this.#poller = new LinePoller({
      env,
      onSeen: (line) => this.#onSeen(line),
      onLapse: (line) => this.#onLapse(line),
    })
    this.#calls = new LineCalls({
      env,
      onSeen: (line) => this.#onSeen(line),
      onWritten: (line, news) => {
        this.claims.tell(line, news)
        if (line.own.size > 0) this.#poller.update(line)
      },
    })
  }

  join(member: LocalMember): void {
    this.claims.add(member)
    this.#poller.open()
    for (const { server } of this.nodes) server.open()
  }

  /** The last client closes the connections; the next one opens them again. */
  leave(member: LocalMember): void {
    for (const line of this.#allLines())
      for (const [id, claim] of line.own) if (claim.member === member) this.unfollow(line, id)
    if (!this.claims.remove(member)) return
    this.#poller.close()
    this.watches.close()
    for (const { server } of this.nodes) server.close()
    this.#lines.clear()
    this.#lineCount = 0
    this.#mostLines = 2 * KEPT_LINES
  }

  line(space: string, resource: string): MemcachedLine {
    const lines = this.#lines.get(space) ?? new Map<string, MemcachedLine>()
    const known = lines.get(resource)
    if (known) return known
    if (this.#lineCount >= this.#mostLines) this.#forgetLines()
    this.#lines.set(space, lines)
    const key = this.keys.of('l', space, resource)
    const { retentionMs } = this.#options
    const line = new MemcachedLine({ key, node: this.#nodeOf(key), space, resource, retentionMs })
    lines.set(resource, line)
    this.#lineCount++
    return line
  }

  /** Runs a call on the line, and answers it when that is written. */
  submit<T>(
    line: MemcachedLine,
    run: (calls: EmbeddedLines) => T,
    resolve: (reply: T) => void,
    reject: (error: unknown) => void,
  ): void {
    this.#calls.submit(line, run, resolve, reject)
  }

  /** From now on, the client hears what becomes of its claim. */
  follow(line: MemcachedLine, id: string, member: LocalMember): void {
    this.claims.follow(line, id, member)
    this.#poller.start(line)
  }

  unfollow(line: MemcachedLine, id: string): void {
    if (line.own.delete(id)) this.#poller.update(line)
  }

  #onSeen(line: MemcachedLine): void {
    this.claims.compare(line)
    this.#poller.update(line)
  }

  /** The next claim of ours asks, and is promoted by that. */
  #onLapse({ own }: MemcachedLine): void {
    for (const { isHeld, member } of own.values()) if (!isHeld) return member.onNews({ type: 'gap' })
  }

  #nodeOf(key: string): MemcachedNode {
    const node = this.nodes[chooseServer(this.#names, key)]
    if (!node) throw new Error('A memcached store needs a server')
    return node
  }

  *#allLines(): Iterable<MemcachedLine> {
    for (const lines of this.#lines.values()) yield* lines.values()
  }

  /** The oldest first. Not again before there are twice as many as stay. */
  #forgetLines(): void {
    for (const lines of this.#lines.values())
      for (const [resource, line] of lines) {
        if (this.#lineCount <= KEPT_LINES) break
        if (!line.isIdle) continue
        lines.delete(resource)
        this.#lineCount--
      }
    this.#mostLines = 2 * Math.max(KEPT_LINES, this.#lineCount)
  }
}
