import { type Cancel, systemEnv } from '../../base/env.js'
import type { News } from './clients.js'
import type { Changed } from './driver.js'
import type { Runner } from './runner.js'
import { MODE } from './sql/claim.js'
import { bytes, json, toBytes } from './values.js'

/** So many take some tens of milliseconds, for which their line is locked. */
const MOST_CALLS = 500
/** After that long the next ones do not wait any more for those before them, which may never be answered. */
const PATIENCE_MS = 2000

export interface Place {
  readonly line: string
  readonly space: string
  readonly resource: string
}

/** A value of a claim: a number, or bytes in hexadecimal; null is nothing. */
export type Value = number | string | null

/** An UPDATE that does what is asked where nobody else is in the line, and nothing otherwise. */
export interface ShortWay {
  sql(at: string): string
  /** The answer to the call where it has changed the line. */
  reply(changed: Changed): unknown
}

interface Call {
  readonly submittedAt: number
  /** The client that makes it. */
  readonly caller: string
  readonly values: readonly Value[]
  readonly shortWay: ShortWay | undefined
  resolve(reply: unknown): void
  reject(error: unknown): void
}

export interface Answer<T> {
  readonly reply: T
  readonly news: readonly News[]
}

export interface TurnsContext {
  readonly runner: Runner
  /** The time as the last argument of a routine. */
  at(): string
  /** Before the calls are answered. */
  tell(news: readonly News[], place: Place): void
}

/**
 * Claims and releases of one line go one after the other, so that claims join it in the order in which they were made, whatever connections they travel on. Those that are
 * made while others are under way travel together: a thousand waiters cost some ten calls.
 */
export class Turns {
  readonly #context: TurnsContext
  /** By line, of the lines with calls under way: those that wait for them. */
  readonly #queues = new Map<string, Call[]>()

  constructor(context: TurnsContext) {
    this.#context = context
  }

  /** `shortWay` is tried first, if the call travels alone. */
  submit<T>(place: Place, caller: string, values: readonly Value[], shortWay?: ShortWay): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const submittedAt = systemEnv.now()
      const call = {
        submittedAt,
        caller,
        values,
        shortWay,
        resolve: resolve as (reply: unknown) => void,
        reject,
      }
      const queue = this.#queues.get(place.line)
      if (queue) queue.push(call)
      else {
        this.#queues.set(place.line, [])
        this.#send(place, [call])
      }
    })
  }

  #send(place: Place, calls: readonly Call[]): void {
    let hasGoneOn = false
    const goOn = (): void => {
      if (!hasGoneOn) this.#next(place)
      hasGoneOn = true
    }
    let cancel: Cancel = () => {}
    let sentAt = 0
    const ask = () => {
      sentAt = systemEnv.now()
      cancel = systemEnv.timer(PATIENCE_MS, goOn, { keepAlive: false })
      return this.#ask(place, calls)
    }
    this.#context.runner.turns.run(ask).then(
      ({ replies, news }) => {
        cancel()
        // The next ones leave first: who is answered here may take a while.
        goOn()
        this.#context.tell(news, place)
        calls.forEach((call, index) => {
          call.resolve(withWait(replies[index], sentAt - call.submittedAt))
        })
      },
      (error) => {
        cancel()
        goOn()
        for (const call of calls) call.reject(error)
      },
    )
  }

  #next(place: Place): void {
    const waiting = this.#queues.get(place.line) ?? []
    if (waiting.length === 0) this.#queues.delete(place.line)
    else this.#send(place, waiting.splice(0, MOST_CALLS))
  }

  async #ask(place: Place, calls: readonly Call[]): Promise<{ replies: unknown[]; news: readonly News[] }> {
    const { runner, at } = this.#context
    const shortWay = calls.length === 1 ? calls[0]?.shortWay : undefined
    if (shortWay) {
      const changed = await runner.change(shortWay.sql(at()))
      if (changed.rows === 1) return { replies: [shortWay.reply(changed)], news: [] }
    }
    const [routine, values] = statementOf(place, calls)
    const [row = ''] = await runner.call(routine, [bytes(place.line), ...values, at()])
    const { reply, news } = JSON.parse(row) as Answer<unknown>
    return { replies: calls.length === 1 ? [reply] : (reply as unknown[]), news }
  }
}

function withWait(reply: unknown, waitedMs: number): unknown {
  const { status } = Object(reply) as { status?: unknown }
  return status === 'granted' ? { ...(reply as object), waitedMs } : reply
}

/** The routine for these calls, and its arguments without the line and the time. */
function statementOf(
  { space, resource }: Place,
  calls: readonly Call[],
): [routine: string, values: string[]] {
  const [only] = calls
  const name = [toBytes(space), toBytes(resource)]
  // Others of this process may be among them: they are told in both ways.
  const caller = toBytes(only?.caller ?? '')
  if (calls.length > 1 || !only)
    return ['turn', [caller, ...name, json(JSON.stringify(calls.map(({ values }) => values)))]]
  const [mode, ...values] = only.values
  if (mode === MODE.release) return ['leave', [caller, ...values.map(toSql)]]
  return ['join', [caller, ...name, ...only.values.map(toSql)]]
}

function toSql(value: Value): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? String(value) : bytes(value)
}
