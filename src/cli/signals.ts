import { constants } from 'node:os'
import { EXIT } from './exit-codes.js'

/** The signals that are forwarded to the command. SIGTSTP and SIGCONT need more than that. */
const FORWARDED = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGWINCH',
] as const

/** The exit code that shells report after a signal. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return EXIT.signalled + constants.signals[signal]
}

/** Where the signals go once a command runs. */
export interface SignalTarget {
  signal(signal: NodeJS.Signals): void
  /** Before `holdfast` is stopped (Ctrl-Z). */
  suspend(): void
  /** After `holdfast` continued. */
  resume(): void
}

/**
 * Catches the signals from the start, so that none of them can end or stop `holdfast` while a
 * command runs. Before that, the first signal cancels the wait; from then on each goes to the
 * command.
 */
export class SignalRelay {
  /** Aborts, with the signal's name as reason, if one arrives before a command runs. */
  readonly cancelled: AbortSignal
  readonly #controller = new AbortController()
  readonly #listeners = new Map<NodeJS.Signals, () => void>()
  #target: SignalTarget | undefined

  constructor() {
    this.cancelled = this.#controller.signal
    for (const signal of FORWARDED) this.#listen(signal, () => this.#forward(signal))
    this.#listen('SIGTSTP', () => {
      this.#target?.suspend()
      process.kill(process.pid, 'SIGSTOP')
    })
    this.#listen('SIGCONT', () => this.#target?.resume())
  }

  /** The signal that cancelled the wait, if one did. */
  get received(): NodeJS.Signals | undefined {
    return this.cancelled.aborted ? (this.cancelled.reason as NodeJS.Signals) : undefined
  }

  forwardTo(target: SignalTarget): void {
    this.#target = target
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
    this.#listeners.clear()
  }

  #forward(signal: NodeJS.Signals): void {
    if (this.#target !== undefined) this.#target.signal(signal)
    // A resized window does not cancel the wait.
    else if (signal !== 'SIGWINCH') this.#controller.abort(signal)
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener)
    process.on(signal, listener)
  }
}
