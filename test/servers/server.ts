import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../src/testing/conformance/checks.js'
import { runWithWill, type Testator } from './last-will.js'

/** What is particular to one kind of server. */
export interface Kind {
  readonly name: string
  /** Where its folder is made; default: that of temporary files. */
  readonly parent?: string | undefined
  /** The program and its arguments. */
  command(server: Server): readonly string[]
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Lays out an empty data folder, where the server does not do it by itself. */
  layOut?(server: Server): Promise<void>
  /** Whether it serves; may throw as long as it does not. */
  isReady(server: Server): Promise<boolean>
  /** How `stop` ends it: kill -9 unless told, as its folder goes with it. */
  readonly stopSignal?: NodeJS.Signals
}

/** Its own processes end with it, but for those that stand still: they have to go on to notice. */
const END_IT = 'kill -CONT $(cat /proc/$$/task/$$/children); kill -9 $$'

/**
 * A private server of a test: one process, one port on 127.0.0.1, one temporary folder. It never
 * outlives the test run.
 */
export class Server {
  readonly port: number
  readonly folder: string
  readonly #kind: Kind
  /** Removes the folder of a server that a test has killed, and never stopped. */
  readonly #folderWill: Testator
  #running: Testator | null = null

  constructor(kind: Kind, port: number) {
    this.#kind = kind
    this.port = port
    this.folder = mkdtempSync(join(kind.parent ?? tmpdir(), `holdfast-${kind.name}-`))
    this.#folderWill = runWithWill(['true'], `rm -rf '${this.folder}'`)
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  get dataFolder(): string {
    return join(this.folder, 'data')
  }

  get pid(): number {
    const pid = this.#running?.child.pid
    if (pid === undefined) throw new Error(`${this.#kind.name} on port ${this.port} is not running`)
    return pid
  }

  get isRunning(): boolean {
    return this.#running !== null
  }

  /** Resolves when it serves. */
  async start(): Promise<void> {
    const isNew = mkdirSync(this.dataFolder, { recursive: true }) !== undefined
    if (isNew) await this.#kind.layOut?.(this)
    this.#spawn()
    await eventually(`${this.#kind.name} on port ${this.port} serving`, () => this.#isReady(), 60_000)
  }

  /** Ends it for good and removes its folder; harmless when it has ended already. */
  async stop(): Promise<void> {
    this.resume()
    await this.kill(this.#kind.stopSignal)
    rmSync(this.folder, { recursive: true, force: true })
    this.#folderWill.revoke()
  }

  /** Sends a signal that ends it, kill -9 unless told; resolves when the process is no more. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const running = this.#running
    if (running === null) return
    const ended = once(running.child, 'exit')
    running.child.kill(signal)
    await ended
  }

  /** Freezes it: it keeps its connections and answers nothing. */
  pause(): void {
    this.#running?.child.kill('SIGSTOP')
    if (this.#running?.child.pid) untilStill(this.#running.child.pid)
  }

  resume(): void {
    this.#running?.child.kill('SIGCONT')
  }

  /**
   * Starts it on the same port again, after a kill -9 if it runs; `keepData: false` with nothing of
   * what it knew.
   */
  async restart(options: { keepData: boolean }): Promise<void> {
    await this.kill()
    if (!options.keepData) rmSync(this.dataFolder, { recursive: true, force: true })
    await this.start()
  }

  /** What it wrote to its standard output and error. */
  get log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8')
  }

  #spawn(): void {
    const log = openSync(join(this.folder, 'log'), 'a')
    const running = runWithWill(this.#kind.command(this), END_IT, {
      stdio: [log, log],
      cwd: this.folder,
      env: { ...process.env, ...this.#kind.env },
    })
    closeSync(log)
    this.#running = running
    running.child.once('exit', () => {
      this.#running = null
      running.revoke()
    })
  }

  async #isReady(): Promise<boolean> {
    if (!this.isRunning) throw new Error(`${this.#kind.name} ended instead of serving:\n${this.log}`)
    return this.#kind.isReady(this).catch(() => false)
  }
}

/** The server, started; a failed start leaves nothing behind. */
export async function started<T extends Server>(server: T): Promise<T> {
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

/**
 * The signal is only on its way when it was sent: a thread that runs on another processor may
 * answer one more call. Linux tells; elsewhere it is believed.
 */
function untilStill(pid: number): void {
  const tasks = `/proc/${pid}/task`
  const deadline = performance.now() + 5000
  const isStill = (task: string): boolean => {
    try {
      return /\) [TtZX] /.test(readFileSync(`${tasks}/${task}/stat`, 'utf8'))
    } catch {
      // It has ended.
      return true
    }
  }
  while (existsSync(tasks) && performance.now() < deadline && !readdirSync(tasks).every(isStill));
}
