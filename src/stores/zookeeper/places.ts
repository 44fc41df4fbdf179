import type { Env } from '../../base/env.js'
import type { Push } from '../../contract/store.js'
import type { Stat } from '../../drivers/zookeeper/index.js'
import { Batch } from './batch.js'
import { Emptied } from './emptied.js'
import { Entrances } from './entrances.js'
import { hasCode } from './failures.js'
import type { Format } from './format.js'
import { Line } from './line.js'
import { encode } from './names.js'
import type { SharedSession } from './session.js'
import type { Stay } from './stay.js'

/** What a claim's node tells of it beside its name. */
export interface ClaimData {
  /** Who asks, for people. */
  readonly info: string
  /** The negotiated time-out of its session. */
  readonly timeoutMs: number
  /** Tells the nodes of two attempts under one id apart; 0: none of ours. */
  readonly attempt: number
}

/** Most claims are over before that; what is done for those that last begins then. */
const LASTING_MS = 200

export const DEFAULT_ROOT = '/holdfast'

interface Setting {
  readonly session: SharedSession
  readonly env: Env
  readonly push: (news: Push) => void
  readonly format: Format
  readonly root: string
  readonly space: string
}

/** Where the lines of one space are, and what is needed to work on them. */
export class Places {
  readonly session: SharedSession
  readonly env: Env
  readonly push: (news: Push) => void
  readonly format: Format
  readonly root: string
  readonly space: string
  readonly lines: string
  readonly states: string
  readonly batch: Batch
  readonly emptied = new Emptied()
  readonly entrances = new Entrances()
  /** Asked for, and not sent yet. */
  readonly #listings = new Map<string, Promise<Line>>()
  /** The claims of this client, by the paths of their nodes. */
  readonly #stays = new Map<string, Stay>()
  /** How many claims of this client have a node in a line. */
  readonly #nodesIn = new Map<string, number>()
  /** Those that are not known to last yet. */
  readonly #fresh = new Set<Stay>()
  #isAttending = false
  #data = { info: '', timeoutMs: -1, head: '' }

  constructor(setting: Setting) {
    const { session, env, push, format, root, space } = setting
    this.session = session
    this.env = env
    this.root = root
    this.space = space
    this.batch = new Batch(session)
    this.push = push
    this.format = format
    this.lines = format.linesIn(root, space)
    this.states = `${format.isOwn ? root : DEFAULT_ROOT}/${encode(space)}/states`
  }

  /** What a node tells of its claim. Most claims tell the same, which is put together once, and only the attempt is added. */
  dataOf(info: string, attempt: number): string {
    const { timeoutMs } = this.session
    if (this.#data.info !== info || this.#data.timeoutMs !== timeoutMs)
      this.#data = { info, timeoutMs, head: JSON.stringify({ info, timeoutMs }).slice(0, -1) }
    return `${this.#data.head},"attempt":${attempt}}`
  }

  lineOf(resource: string): string {
    return `${this.lines}/${this.format.lineName(resource)}`
  }

  /**
   * The line as it is after everything that was sent before; where there is no node for it, empty. Those who ask in one turn of the
   * event loop share the answer: a thousand who join together must not each fetch a thousand names.
   */
  list(resource: string): Promise<Line> {
    const soon = this.#listings.get(resource)
    if (soon) return soon
    const listing = new Promise<Line>((resolve) => {
      process.nextTick(() => {
        this.#listings.delete(resource)
        // Whoever asks now shall be in it, too.
        this.batch.send()
        resolve(this.#list(this.lineOf(resource)))
      })
    })
    this.#listings.set(resource, listing)
    return listing
  }

  /** The line with everything that was done to it anywhere before: the server that we are at may lag behind what our user has heard from elsewhere. */
  async listInSync(resource: string): Promise<Line> {
    await this.session.zk.sync()
    return this.list(resource)
  }

  /** The claim of this client that has that node. */
  stayAt(path: string): Stay | undefined {
    return this.#stays.get(path)
  }

  /** The line's node is there for certain: one of ours is below it. */
  isIn(line: string): boolean {
    return this.#nodesIn.has(line)
  }

  stands(line: string, name: string, stay: Stay): void {
    this.#stays.set(`${line}/${name}`, stay)
    this.#nodesIn.set(line, (this.#nodesIn.get(line) ?? 0) + 1)
    this.#fresh.add(stay)
    if (this.#isAttending) return
    this.#isAttending = true
    this.env.timer(LASTING_MS, () => this.#attend(), { keepAlive: false })
  }

  left(line: string, name: string, stay: Stay): void {
    const others = (this.#nodesIn.get(line) ?? 1) - 1
    this.#stays.delete(`${line}/${name}`)
    if (others > 0) this.#nodesIn.set(line, others)
    else this.#nodesIn.delete(line)
    this.#fresh.delete(stay)
  }

  #attend(): void {
    this.#isAttending = false
    const stays = [...this.#fresh]
    this.#fresh.clear()
    for (const stay of stays) stay.attend()
  }

  async #list(path: string): Promise<Line> {
    try {
      const { children, stat } = await this.session.zk.getChildren(path)
      return this.line(children, stat)
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return new Line([], 0n)
      throw error
    }
  }

  line(children: readonly string[], stat: Stat): Line {
    return new Line(children, stat.mzxid, this.format)
  }
}

/** Nodes that somebody else put there are shown, too. */
export function readData(bytes: Buffer): ClaimData {
  try {
    const { info = '', timeoutMs = 0, attempt = 0 } = JSON.parse(String(bytes))
    return { info: String(info), timeoutMs: Number(timeoutMs), attempt: Number(attempt) }
  } catch {
    return { info: '', timeoutMs: 0, attempt: 0 }
  }
}
