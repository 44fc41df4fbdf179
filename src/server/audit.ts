import type { Env } from '../base/env.js'
import { quietly } from '../base/quietly.js'
import { Buckets } from './buckets.js'
import { iso } from './lines.js'
import { codeOf, Problem } from './problems.js'
import type { AuditEntry } from './shapes.js'

/** How many entries are kept in memory, for the page. Strangers have a part of their own. */
const KEPT = { users: 200, strangers: 100 }
/** Entries about all strangers together: so many at once, then one each second. */
const STRANGERS = { burst: 100, perSecond: 1 }
/** Names and details are cut: a log must not grow by what a request repeats. */
const LONGEST_TEXT = 1000

/** What a change is about. The work fills in what it finds out. */
export interface AuditSubject {
  who: string | null
  readonly action: string
  readonly space: string
  readonly resource: string
  detail: string
  /** Whether a user was let in. What strangers do must not fill the disk. */
  isUser: boolean
}

interface Kept {
  readonly number: number
  readonly entry: AuditEntry
}

/** Writes down every change that was made or refused. */
export class Audit {
  readonly #env: Env
  readonly #write: ((entry: AuditEntry) => unknown) | undefined
  readonly #strangers: Buckets
  readonly #kept: { users: Kept[]; strangers: Kept[] } = { users: [], strangers: [] }
  #count = 0

  constructor(env: Env, write: ((entry: AuditEntry) => unknown) | undefined) {
    this.#env = env
    this.#write = write
    this.#strangers = new Buckets(env, STRANGERS)
  }

  /** The newest first. */
  get entries(): readonly AuditEntry[] {
    const { users, strangers } = this.#kept
    return [...users, ...strangers].sort((a, b) => b.number - a.number).map(({ entry }) => entry)
  }

  /** Does the work, and writes down what became of it. */
  async around<T>(subject: AuditSubject, work: () => Promise<T>): Promise<T> {
    let result = 'done'
    try {
      return await work()
    } catch (error) {
      result = codeOf(error)
      throw error
    } finally {
      this.#note(subject, result)
    }
  }

  /** Writes down that a change begins. Rejects if that fails: a change is never made unwritten. */
  async begin(subject: AuditSubject): Promise<void> {
    try {
      await this.#write?.(this.#entryOf(subject, 'begun'))
    } catch {
      throw new Problem('AUDIT_UNAVAILABLE', 'The audit log cannot be written, so nothing was changed')
    }
  }

  #note(subject: AuditSubject, result: string): void {
    if (!subject.isUser && !this.#strangers.take('')) return
    const entry = this.#entryOf(subject, result)
    const part = subject.isUser ? 'users' : 'strangers'
    this.#kept[part] = [...this.#kept[part].slice(1 - KEPT[part]), { number: ++this.#count, entry }]
    // A change that was made has its beginning in the log. The client is told what became of it.
    quietly(() => this.#write?.(entry))
  }

  #entryOf({ who, action, space, resource, detail }: AuditSubject, result: string): AuditEntry {
    const cut = (text: string): string => text.slice(0, LONGEST_TEXT)
    return {
      at: iso(this.#env.wallMs()),
      who: who === null ? null : cut(who),
      action,
      space: cut(space),
      resource: cut(resource),
      detail: cut(detail),
      result,
    }
  }
}
