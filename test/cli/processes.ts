import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const ROOT = new URL('../../', import.meta.url)
const MAIN = fileURLToPath(new URL('dist/cjs/cli/main.js', ROOT))
const DEADLINE_MS = 40_000

export interface Outcome {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A process of a test, with what it has written so far. It is killed when the test ends, should it still run. */
export class Running {
  readonly pid: number
  readonly done: Promise<Outcome>
  stdout = ''
  stderr = ''
  readonly #child: ChildProcess
  #hasEnded = false

  constructor(child: ChildProcess) {
    this.#child = child
    this.pid = child.pid ?? -1
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.done = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', () => {
        this.#hasEnded = true
      })
      child.once('close', (code, signal) =>
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }),
      )
    })
    onTestFinished(() => {
      if (!this.#hasEnded) child.kill('SIGKILL')
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Ends its input. */
  end(): void {
    this.#child.stdin?.end()
  }

  /** Closes the pipe of its messages: nobody reads them any more. */
  closeStderr(): void {
    this.#child.stderr?.destroy()
  }

  /** Resolves with the match when the process has written it. */
  wrote(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`output ${pattern} in: ${this.stdout}${this.stderr}`, () => {
      const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr)
      if (match === null && this.#hasEnded)
        throw new Error(`ended without ${pattern}: ${this.stdout}${this.stderr}`)
      return match
    })
  }
}

/** A folder of its own for each test, with a store in it; nothing here touches the user's own store. */
export class Bench {
  readonly folder: string
  readonly store: string
  readonly env: NodeJS.ProcessEnv

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
    // Again, if a process that is just being killed has put a last file into it.
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 }))
    this.store = `sqlite:${this.path('locks.db')}`
    this.env = {
      PATH: process.env['PATH'],
      HOME: this.folder,
      TMPDIR: this.folder,
      XDG_STATE_HOME: this.path('state'),
      HOLDFAST_STORE: this.store,
    }
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  start(file: string, args: string[], env: NodeJS.ProcessEnv = {}): Running {
    return new Running(spawn(file, args, { env: { ...this.env, ...env }, cwd: fileURLToPath(ROOT) }))
  }

  node(args: string[], env?: NodeJS.ProcessEnv): Running {
    return this.start(process.execPath, args, env)
  }

  /** Starts `holdfast` as a user would. */
  holdfast(args: string[], env?: NodeJS.ProcessEnv): Running {
    return this.node([MAIN, ...args], env)
  }

  /** Starts `holdfast run NAME` with a shell script as its command. */
  script(name: string, options: string[], script: string): Running {
    return this.holdfast(['run', name, ...options, '--', '/bin/sh', '-c', script])
  }

  /** Everything in the store, as `holdfast ls --json` prints it. */
  async lines(): Promise<ListedResource[]> {
    const { stdout } = await this.holdfast(['ls', '--json']).done
    return JSON.parse(stdout) as ListedResource[]
  }
}

export interface ListedResource {
  name: string
  holders: {
    owner: string
    host: string
    pid: number
    label: string
    fence: number
    since: string
    expires: string
  }[]
  waiters: { owner: string; pid: number; label: string }[]
}

/** Asks again and again, until the answer is something; the deadline is for failures only. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined>> {
  const giveUpAt = performance.now() + DEADLINE_MS
  for (;;) {
    const answer = await ask()
    if (answer) return answer as Exclude<T, false | null | undefined>
    if (performance.now() > giveUpAt) throw new Error(`did not happen in ${DEADLINE_MS} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Whether the process runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  return !['', 'Z', 'X'].includes(stateOf(pid))
}

/** The letter by which the kernel tells a process's state: T is stopped; '' is gone. */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  } catch {
    return ''
  }
}

/** Kills what a test left behind outside its own children, for the case that the test fails. */
export function killAfterwards(pid: number): number {
  onTestFinished(() => {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  })
  return pid
}
