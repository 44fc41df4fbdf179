import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startFailure } from './command.js'
import { endSession, liveGroups, send } from './session.js'
import { exitCodeOfSignal } from './signals.js'

/** A running command, in a session and process group of its own, so that all of it can be ended and nothing else. */
export class Job {
  /** The command's pid: also the number of its session and of its process group. */
  readonly session: number
  /** The command's exit code, 128 + n for an end by signal n. */
  readonly exited: Promise<number>
  #hasExited = false

  private constructor(session: number, exited: Promise<number>) {
    this.session = session
    this.exited = exited.then((code) => {
      this.#hasExited = true
      return code
    })
  }

  static async start(command: string[], environment: NodeJS.ProcessEnv): Promise<Job> {
    const [file = '', ...args] = command
    const child = spawn(file, args, { detached: true, env: environment, stdio: 'inherit' })
    if (child.pid === undefined) {
      const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException]
      throw startFailure(file, error)
    }
    const exited = new Promise<number>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 0) : exitCodeOfSignal(signal)))
    })
    return new Job(child.pid, exited)
  }

  /** As a terminal does it: to the command's process group. */
  signal(signal: NodeJS.Signals): void {
    send(this.session, signal)
  }

  /** To every process group of the session: for stopping and going on, which must leave nobody out. */
  signalAll(signal: NodeJS.Signals): void {
    for (const group of liveGroups(this.session, this.#hasExited)) send(group, signal)
  }

  /** Whether something that the command started still runs. */
  get isAlive(): boolean {
    return liveGroups(this.session, this.#hasExited).length > 0
  }

  /** SIGTERM to everything, after the grace SIGKILL; false if something outlived that. */
  end(graceMs: number): Promise<boolean> {
    return endSession(this.session, graceMs, () => this.#hasExited)
  }
}
