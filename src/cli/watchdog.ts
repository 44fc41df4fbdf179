import { type ChildProcess, spawn } from 'node:child_process'
import { systemEnv } from '../base/env.js'
import type { Hold } from '../index.js'
import { say } from './failures.js'
import { startOf } from './session.js'
import { WATCHDOG_SCRIPT } from './watchdog-script.js'

const LOOK_AT_LEAST_EVERY_MS = 5000
const LOOK_AT_MOST_EVERY_MS = 50

/**
 * A small shell in a session of its own that ends the command when `holdfast` cannot: it was killed with SIGKILL (the pipe
 * ends without "done"), or it was stopped or stuck until the hold's validity ran out (no "alive" came in time).
 */
export class Watchdog {
  readonly #hold: Hold
  readonly #shell: ChildProcess
  #toldUntilMs = 0
  #cancelLook = (): void => {}
  #isDismissed = false

  /**
   * To be made before the command is started, so that there is no moment in which the command runs unguarded. The mark is a
   * text in the environment that the command will have.
   */
  constructor(hold: Hold, graceMs: number, mark: string) {
    this.#hold = hold
    const grace = String(Math.ceil(graceMs))
    this.#shell = spawn('/bin/sh', ['-c', 'eval "$SCRIPT"', 'holdfast-watchdog', grace, mark], {
      cwd: '/', // so that it keeps no file system busy
      detached: true,
      env: { PATH: '/usr/bin:/bin', SCRIPT: WATCHDOG_SCRIPT }, // not an argument: `ps` would show all of it
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const gone = () => {
      if (!this.#isDismissed)
        say('the watchdog is gone: should holdfast be killed now, the command would go on')
    }
    this.#shell.once('error', gone)
    this.#shell.once('exit', gone)
    this.#shell.stdin?.on('error', () => {}) // its end is reported above
    this.#shell.unref()
    this.#look()
  }

  /** Names the session of the command that was started. */
  guard(session: number): void {
    // The start time tells the command from a stranger that gets its number later.
    this.#tell(`watch ${session} ${startOf(session)}`)
    this.#tellValidity()
  }

  /** Nothing is left to guard. */
  dismiss(): void {
    this.#isDismissed = true
    this.#cancelLook()
    this.#shell.stdin?.end('done\n')
  }

  #look(): void {
    const leftMs = Math.max(0, this.#hold.remainingMs)
    // It grows by renewals only.
    if (systemEnv.now() + leftMs > this.#toldUntilMs + 1) this.#tellValidity()
    // The closer the end, the closer we look: a renewal in the last moment must reach the shell before its timer does.
    const lookMs = Math.min(LOOK_AT_LEAST_EVERY_MS, Math.max(LOOK_AT_MOST_EVERY_MS, leftMs / 4))
    this.#cancelLook = systemEnv.timer(lookMs, () => this.#look(), { keepAlive: false })
  }

  #tellValidity(): void {
    const leftMs = Math.max(0, this.#hold.remainingMs)
    this.#toldUntilMs = systemEnv.now() + leftMs
    this.#tell(`alive ${(leftMs / 1000).toFixed(3)}`)
  }

  #tell(line: string): void {
    this.#shell.stdin?.write(`${line}\n`)
  }
}
