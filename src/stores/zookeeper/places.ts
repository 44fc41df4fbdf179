import type { Env } from '../../base/env.js'
import type { Push } from '../../contract/store.js'
import { hasCode } from './failures.js'
import { Line } from './line.js'
import { encode } from './names.js'
import type { SharedSession } from './session.js'

/** What a claim's node tells of it beside its name. */
export interface ClaimData {
  /** Who asks, for people. */
  readonly info: string
  /** The negotiated time-out of its session. */
  readonly timeoutMs: number
}

/** Where the lines of one space are, and what is needed to work on them. */
export class Places {
  readonly session: SharedSession
  readonly env: Env
  readonly push: (news: Push) => void
  readonly #root: string
  /** Asked for, and not sent yet. */
  readonly #listings = new Map<string, Promise<Line>>()

  constructor(session: SharedSession, env: Env, push: (news: Push) => void, root: string, space: string) {
    this.session = session
    this.env = env
    this.push = push
    this.#root = `${root}/${encode(space)}`
  }

  get lines(): string {
    return `${this.#root}/lines`
  }

  get states(): string {
    return `${this.#root}/states`
  }

  lineOf(resource: string): string {
    return `${this.lines}/${encode(resource)}`
  }

  /**
   * The line as it is after everything that was sent before; where there is no node for it, empty. Those who ask in one turn of the
   * event loop share the answer: a thousand who join together must not each fetch a thousand names.
   */
  list(resource: string): Promise<Line> {
    const soon = this.#listings.get(resource)
    if (soon) return soon
    const listing = new Promise((resolve) => setImmediate(resolve)).then(async () => {
      this.#listings.delete(resource)
      return this.#list(this.lineOf(resource))
    })
    this.#listings.set(resource, listing)
    return listing
  }

  async #list(path: string): Promise<Line> {
    try {
      const { children, stat } = await this.session.zk.getChildren(path)
      return new Line(children, stat.mzxid)
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return new Line([], 0n)
      throw error
    }
  }
}

export function writeData(data: ClaimData): string {
  return JSON.stringify(data)
}

/** Nodes that somebody else put there are shown, too. */
export function readData(bytes: Buffer): ClaimData {
  try {
    const { info = '', timeoutMs = 0 } = JSON.parse(String(bytes))
    return { info: String(info), timeoutMs: Number(timeoutMs) }
  } catch {
    return { info: '', timeoutMs: 0 }
  }
}
