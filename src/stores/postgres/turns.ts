import type { Cancel, Env } from '../../base/env.js'
import { encodeText } from '../../base/text.js'
import type { Value } from './driver.js'

/** A claim or release, in the words of the routine `calls`. */
export interface LineCall {
  readonly mode: 'queue' | 'try' | 'steal' | 'adopt' | 'release'
  readonly id: string
  readonly [field: string]: unknown
}

export interface TurnsContext {
  readonly env: Env
  readonly space: string
  readonly channel: string
  call(routine: string, values: readonly Value[]): Promise<unknown>
  /** Calls, when a connection can be had for it. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
}

interface Entry {
  readonly submittedAt: number
  readonly call: LineCall
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/** The line is locked until all of them are done. */
const MOST_CALLS = 500
/** A call that takes longer may be on a connection that is dead: those behind it take another one. */
const PATIENCE_MS = 5000

/**
 * The claims and releases of one space, line by line. While one call for a line is under way, those that come meanwhile gather, and travel together in
 * their order. So a line never takes more than one connection of the pool, and a burst costs a few round trips.
 */
export class Turns {
  readonly #context: TurnsContext
  /** By resource: those that gather behind a call under way. */
  readonly #gathered = new Map<string, Entry[]>()

  constructor(context: TurnsContext) {
    this.#context = context
  }

  submit(resource: string, call: LineCall): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const entry = { submittedAt: this.#context.env.now(), call, resolve, reject }
      const gathered = this.#gathered.get(resource)
      if (gathered) gathered.push(entry)
      else void this.#send(resource, [entry])
    })
  }

  /** Never rejects: the calls do. */
  async #send(resource: string, entries: readonly Entry[]): Promise<void> {
    const { env, space, channel, call, inTurn } = this.#context
    const behind: Entry[] = []
    this.#gathered.set(resource, behind)
    const goOn = (): void => {
      cancel()
      if (this.#gathered.get(resource) !== behind) return
      this.#gathered.delete(resource)
      if (behind.length === 0) return
      void this.#send(resource, behind.splice(0, MOST_CALLS))
      this.#gathered.get(resource)?.push(...behind)
    }
    let cancel: Cancel = () => {}
    const { routine, values } = inWords(entries.map(({ call }) => call))
    try {
      let sentAt = 0
      const replies = (await inTurn(() => {
        sentAt = env.now()
        cancel = env.timer(PATIENCE_MS, goOn, { keepAlive: false })
        return call(routine, [space, encodeText(resource), ...values, channel])
      })) as unknown[]
      for (const [index, { submittedAt, resolve }] of entries.entries())
        resolve(withWait(replies[index], sentAt - submittedAt))
    } catch (error) {
      for (const { reject } of entries) reject(error)
    }
    goOn()
  }
}

function withWait(reply: unknown, waitedMs: number): unknown {
  const { status } = Object(reply) as { status?: unknown }
  return status === 'granted' ? { ...(reply as object), waitedMs } : reply
}

/** In the words of the routines: `calls` takes any number, the others the one that is most common. */
function inWords(calls: readonly LineCall[]): { routine: string; values: Value[] } {
  const [only] = calls
  if (only && calls.length === 1)
    return { routine: only.mode === 'release' ? 'give_back' : 'take', values: [JSON.stringify(only)] }
  const claims = calls.filter(({ mode }) => mode !== 'release').length
  return { routine: 'calls', values: [JSON.stringify(calls), String(claims)] }
}
