import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startFailure } from './command.js'
import { endSession, liveGroups, send } from './session.js'
import { exitCodeOfSignal } from './signals.js'

/**
 * A running command in its own session and process group, so that exactly its processes can be
 * ended.
 */
export class Job {
  /** The command's pid: also the number of its session and of its process group. */
  readonly session: number
  /** The command's exit code, 128 + n after signal n. */
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

  /** To the command's process group, as a terminal does it. */
  signal(signal: NodeJS.Signals): void {
    send(this.session, signal)
  }

  /** To every process group of the session: all of them must stop, or continue. */
  signalAll(signal: NodeJS.Signals): void {
    for (const group of liveGroups(this.session, this.#hasExited)) send(group, signal)
  }

  /** Whether a process that the command started still runs. */
  get isAlive(): boolean {
    return liveGroups(this.session, this.#hasExited).length > 0
  }

  /** SIGTERM to all processes, after the grace period SIGKILL; false if one outlived that. */
  end(graceMs: number): Promise<boolean> {
    return endSession(this.session, graceMs, () => this.#hasExited)
  }
}
