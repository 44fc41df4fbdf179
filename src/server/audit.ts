import type { Env } from '../base/env.js'
import { iso } from './lines.js'
import { codeOf } from './problems.js'
import type { AuditEntry } from './shapes.js'

/** How many entries are kept in memory, for the page. */
const KEPT = 200
/** Names and details are cut: a log must not grow by what a request repeats. */
const LONGEST_TEXT = 1000

/** What a change is about, before its outcome is known. */
export interface AuditSubject {
  readonly who: string | null
  readonly action: string
  readonly space: string
  readonly resource: string
  readonly detail: string
}

/** Writes down every change that was made or refused. */
export class Audit {
  readonly #env: Env
  readonly #write: ((entry: AuditEntry) => void) | undefined
  #entries: AuditEntry[] = []

  constructor(env: Env, write: ((entry: AuditEntry) => void) | undefined) {
    this.#env = env
    this.#write = write
  }

  /** The newest first. */
  get entries(): readonly AuditEntry[] {
    return this.#entries.toReversed()
  }

  /** Does the work, and writes down what became of it, unless it need not be. */
  async around<T>(subject: () => AuditSubject, isWritten: () => boolean, work: () => Promise<T>): Promise<T> {
    let result = 'done'
    try {
      return await work()
    } catch (error) {
      result = codeOf(error)
      throw error
    } finally {
      if (isWritten()) this.#note(subject(), result)
    }
  }

  #note(subject: AuditSubject, result: string): void {
    const { who, action, space, resource, detail } = subject
    const cut = (text: string): string => text.slice(0, LONGEST_TEXT)
    const entry: AuditEntry = {
      at: iso(this.#env.wallMs()),
      who: who === null ? null : cut(who),
      action,
      space: cut(space),
      resource: cut(resource),
      detail: cut(detail),
      result,
    }
    this.#entries = [...this.#entries.slice(1 - KEPT), entry]
    this.#write?.(entry)
  }
}
