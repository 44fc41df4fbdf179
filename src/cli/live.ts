import { toMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import { EXIT } from './exit-codes.js'
import { describeFailure, say, usageError } from './failures.js'

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

/**
 * A command that goes on until it is told to end: by a key, by a signal, or because nobody reads
 * what it prints.
 */
export class Live {
  #end: (() => void) | null = null
  #isOver = false
  #hasSeen = false
  #isInTrouble = false
  #exitCode: number = EXIT.ok
  readonly #handlers = Object.entries(SIGNALS).map(
    ([name, number]) => [name, () => this.end(EXIT.signalled + number)] as const,
  )
  readonly #onBrokenPipe = (): void => this.end()

  get isOver(): boolean {
    return this.#isOver
  }

  end(exitCode: number = EXIT.ok): void {
    if (!this.#isOver) this.#exitCode = exitCode
    this.#isOver = true
    this.#end?.()
  }

  /** Calls `round` until the end; it gives the milliseconds until the next one. */
  async run(round: () => Promise<number>): Promise<number> {
    for (const [name, handler] of this.#handlers) process.on(name, handler)
    process.stdout.on('error', this.#onBrokenPipe)
    try {
      while (!this.#isOver) {
        const ms = await Promise.race([round(), this.#ended()])
        if (!this.#isOver && ms !== null) await this.#pause(ms)
      }
    } finally {
      for (const [name, handler] of this.#handlers) process.off(name, handler)
    }
    return this.#exitCode
  }

  /**
   * What `look` saw; null if the store failed, or at the end. Says once that it fails, and once
   * that it answers again. The first failure is thrown: it tells whether the store is there at all.
   */
  async look<T>(look: () => Promise<T>): Promise<{ readonly seen: T } | null> {
    try {
      const seen = await look()
      if (this.#isOver) return null
      if (this.#isInTrouble) say('the store answers again')
      this.#hasSeen = true
      this.#isInTrouble = false
      return { seen }
    } catch (error) {
      if (!this.#hasSeen) throw error
      if (!this.#isInTrouble && !this.#isOver) say(describeFailure(error))
      this.#isInTrouble = true
      return null
    }
  }

  /** A store that does not answer must not keep the command from ending. */
  #ended(): Promise<null> {
    return new Promise((resolve) => {
      this.#end = () => resolve(null)
    })
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = systemEnv.timer(ms, resolve, { keepAlive: true })
      this.#end = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** The value of `--interval`. */
export function parseInterval(text: string | undefined, command: string, defaultMs: number): number {
  if (text === undefined) return defaultMs
  try {
    return toMs(text, { name: '--interval', minMs: 100 })
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error), command)
  }
}
