import { constants } from 'node:os'
import { EXIT } from './exit-codes.js'

/** What a terminal, a service manager or an operator sends to a command; SIGTSTP and SIGCONT need more than passing on. */
const PASSED_ON = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGWINCH',
] as const

/** The code by which shells report an end by signal. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return EXIT.signalled + constants.signals[signal]
}

/** What becomes of the signals once a command runs. */
export interface SignalTarget {
  signal(signal: NodeJS.Signals): void
  /** Before `holdfast` is stopped (Ctrl-Z). */
  suspend(): void
  /** After `holdfast` went on. */
  resume(): void
}

/**
 * Catches the signals from the very start, so that none of them can end or stop `holdfast` beside a running command. Until a
 * command runs, the first one means "give up"; from then on each goes to the command.
 */
export class SignalRelay {
  /** Aborts, with the signal's name as reason, when one arrives before there is a command to pass it to. */
  readonly givenUp: AbortSignal
  readonly #controller = new AbortController()
  readonly #listeners = new Map<NodeJS.Signals, () => void>()
  #target: SignalTarget | undefined

  constructor() {
    this.givenUp = this.#controller.signal
    for (const signal of PASSED_ON) this.#listen(signal, () => this.#pass(signal))
    this.#listen('SIGTSTP', () => {
      this.#target?.suspend()
      process.kill(process.pid, 'SIGSTOP')
    })
    this.#listen('SIGCONT', () => this.#target?.resume())
  }

  /** The signal that made us give up, if one did. */
  get received(): NodeJS.Signals | undefined {
    return this.givenUp.aborted ? (this.givenUp.reason as NodeJS.Signals) : undefined
  }

  passOnTo(target: SignalTarget): void {
    this.#target = target
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
    this.#listeners.clear()
  }

  #pass(signal: NodeJS.Signals): void {
    if (this.#target !== undefined) this.#target.signal(signal)
    // A resized window is no reason to leave the line.
    else if (signal !== 'SIGWINCH') this.#controller.abort(signal)
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener)
    process.on(signal, listener)
  }
}
