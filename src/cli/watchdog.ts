import { type ChildProcess, spawn } from 'node:child_process'
import { systemEnv } from '../base/env.js'
import type { Hold } from '../index.js'
import { say } from './failures.js'
import { startOf } from './session.js'
import { WATCHDOG_SCRIPT } from './watchdog-script.js'

const LONGEST_INTERVAL_MS = 5000
const SHORTEST_INTERVAL_MS = 50
/** When the hold runs out, `holdfast` ends the command first, unless it hangs. */
const LONGEST_HEAD_START_MS = 500
const HEAD_START_SHARE = 0.1
/** After the grace, `holdfast` itself sends SIGKILL. */
const AFTER_GRACE_MS = 5000

/**
 * A small shell in its own session that ends the command when `holdfast` cannot: it was killed with
 * SIGKILL (the pipe ends without "done"), or it was stopped or stuck until the hold expired (no
 * "alive" came in time).
 */
export class Watchdog {
  readonly #hold: Hold
  readonly #graceMs: number
  readonly #shell: ChildProcess
  #reportedUntilMs = 0
  #cancelCheck = (): void => {}
  #isDismissed = false

  /**
   * Made before the command starts, so that the command never runs unguarded. The mark is a text in
   * the environment of the command.
   */
  constructor(hold: Hold, graceMs: number, mark: string) {
    this.#hold = hold
    this.#graceMs = graceMs
    const grace = String(Math.ceil(graceMs))
    this.#shell = spawn('/bin/sh', ['-c', 'eval "$SCRIPT"', 'holdfast-watchdog', grace, mark], {
      cwd: '/', // so that it keeps no file system busy
      detached: true,
      // Not an argument: `ps` would show all of it.
      env: { PATH: '/usr/bin:/bin', SCRIPT: WATCHDOG_SCRIPT },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const gone = () => {
      if (!this.#isDismissed) say('the watchdog has ended: if holdfast is killed now, the command goes on')
    }
    this.#shell.once('error', gone)
    this.#shell.once('exit', gone)
    this.#shell.stdin?.on('error', () => {}) // its end is reported above
    this.#shell.unref()
    hold.signal.addEventListener('abort', () => this.#standBy(), { once: true })
    this.#check()
  }

  /** Names the session of the command that was started. */
  guard(session: number): void {
    // The start time distinguishes the command from a later process with the same pid.
    this.#send(`watch ${session} ${startOf(session)}`)
    this.#reportValidity()
  }

  /** Nothing is left to guard. */
  dismiss(): void {
    this.#isDismissed = true
    this.#cancelCheck()
    this.#shell.stdin?.end('done\n')
  }

  #check(): void {
    const leftMs = this.#hold.remainingMs
    if (this.#hold.signal.aborted) return
    // It grows only with a renewal.
    if (systemEnv.now() + leftMs > this.#reportedUntilMs + 1) this.#reportValidity()
    // More often near the end: a late renewal must reach the shell before its timer fires.
    const checkMs = Math.min(LONGEST_INTERVAL_MS, Math.max(SHORTEST_INTERVAL_MS, leftMs / 4))
    this.#cancelCheck = systemEnv.timer(checkMs, () => this.#check(), { keepAlive: false })
  }

  #reportValidity(): void {
    const leftMs = this.#hold.remainingMs
    if (this.#hold.signal.aborted) return
    this.#reportedUntilMs = systemEnv.now() + leftMs
    this.#wakeAfter(leftMs + Math.min(LONGEST_HEAD_START_MS, this.#graceMs * HEAD_START_SHARE))
  }

  /**
   * `holdfast` itself ends the command, because the hold is lost. A second SIGTERM would make some
   * commands give up their clean-up. The watchdog ends the command only if `holdfast` hangs.
   */
  #standBy(): void {
    if (this.#isDismissed) return
    this.#cancelCheck()
    this.#wakeAfter(this.#graceMs + AFTER_GRACE_MS)
  }

  #wakeAfter(ms: number): void {
    this.#send(`alive ${(ms / 1000).toFixed(3)}`)
  }

  #send(line: string): void {
    this.#shell.stdin?.write(`${line}\n`)
  }
}
