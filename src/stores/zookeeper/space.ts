import type { Env } from '../../base/env.js'
import type { Push } from '../../contract/store.js'
import type { Stat } from '../../drivers/zookeeper/index.js'
import { encode } from '../shared/encoding.js'
import { WriteBatch } from './batch.js'
import { EmptiedLines } from './emptied.js'
import { hasCode } from './failures.js'
import type { NodeFormat } from './format.js'
import { JoinQueue } from './join-queue.js'
import { ListedLine } from './line.js'
import { OwnNodes } from './own-nodes.js'
import type { SharedSession } from './session.js'

/** The data of a claim's node. */
export interface ClaimData {
  /** The claimant, for people. */
  readonly info: string
  /** The negotiated timeout of its session. */
  readonly timeoutMs: number
  /** Tells the nodes of two attempts under one id apart; 0: not a node of ours. */
  readonly attempt: number
}

export const DEFAULT_ROOT = '/holdfast'

interface SpaceSettings {
  readonly session: SharedSession
  readonly env: Env
  readonly push: (news: Push) => void
  readonly format: NodeFormat
  readonly root: string
  readonly name: string
}

/** One space as one client uses it: where its lines are, and what is needed to work on them. */
export class ZooKeeperSpace {
  readonly session: SharedSession
  readonly env: Env
  readonly push: (news: Push) => void
  readonly format: NodeFormat
  readonly root: string
  readonly name: string
  readonly linesPath: string
  readonly statesPath: string
  readonly batch: WriteBatch
  /**
   * For claims whose line's node may be missing. Then the batch is refused and sent again, and
   * later claims would overtake those of other lines in it.
   */
  readonly openings: WriteBatch
  readonly own: OwnNodes
  readonly emptied = new EmptiedLines()
  readonly joins = new JoinQueue()
  /** Lists that will be requested at the end of this turn of the event loop, by resource. */
  readonly #listings = new Map<string, Promise<ListedLine>>()
  #dataHead = { info: '', timeoutMs: -1, text: '' }

  constructor({ session, env, push, format, root, name }: SpaceSettings) {
    this.session = session
    this.env = env
    this.push = push
    this.format = format
    this.root = root
    this.name = name
    this.batch = new WriteBatch(session)
    this.openings = new WriteBatch(session)
    this.own = new OwnNodes(env)
    this.linesPath = format.linesIn(root, name)
    this.statesPath = `${format.isOwn ? root : DEFAULT_ROOT}/${encode(name)}/states`
  }

  /**
   * The data of a claim's node, see `ClaimData`. All but the attempt is the same for most claims,
   * and cached.
   */
  dataOf(info: string, attempt: number): string {
    const { timeoutMs } = this.session
    if (this.#dataHead.info !== info || this.#dataHead.timeoutMs !== timeoutMs)
      this.#dataHead = { info, timeoutMs, text: JSON.stringify({ info, timeoutMs }).slice(0, -1) }
    return `${this.#dataHead.text},"attempt":${attempt}}`
  }

  lineOf(resource: string): string {
    return `${this.linesPath}/${this.format.lineName(resource)}`
  }

  /**
   * The line after everything that was sent before; empty where its node is missing. Calls in one
   * turn of the event loop share the answer: a thousand claims that join together must not each
   * fetch a thousand names.
   */
  list(resource: string): Promise<ListedLine> {
    const pending = this.#listings.get(resource)
    if (pending) return pending
    const listing = new Promise<ListedLine>((resolve) => {
      process.nextTick(() => {
        this.#listings.delete(resource)
        // The list has to show the claims that join in this turn.
        this.batch.send()
        this.openings.send()
        resolve(this.#list(this.lineOf(resource)))
      })
    })
    this.#listings.set(resource, listing)
    return listing
  }

  /**
   * The line with everything that was done to it anywhere before: our server may lag behind what
   * our user has heard from elsewhere.
   */
  async listInSync(resource: string): Promise<ListedLine> {
    await this.session.zk.sync()
    return this.list(resource)
  }

  line(children: readonly string[], stat: Stat): ListedLine {
    return new ListedLine(children, stat.mzxid, this.format, stat.version)
  }

  async #list(path: string): Promise<ListedLine> {
    try {
      const { children, stat } = await this.session.zk.getChildren(path)
      return this.line(children, stat)
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return new ListedLine([], 0n)
      throw error
    }
  }
}

/** Nodes that others made are read, too, as far as they can be. */
export function readData(bytes: Buffer): ClaimData {
  try {
    const { info = '', timeoutMs = 0, attempt = 0 } = JSON.parse(String(bytes))
    return { info: String(info), timeoutMs: Number(timeoutMs), attempt: Number(attempt) }
  } catch {
    return { info: '', timeoutMs: 0, attempt: 0 }
  }
}
