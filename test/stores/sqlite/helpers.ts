import { type ChildProcess, fork } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { RUNTIMES } from '../../../scripts/runtimes.mjs'
import { type Env, systemEnv } from '../../../src/base/env.js'
import { EXCLUSIVE } from '../../../src/contract/constants.js'
import type { ClaimRequest, ClientContext, Connection, Push, Store } from '../../../src/contract/store.js'
import { loadDriver, type SqliteDatabase } from '../../../src/drivers/sqlite.js'
import { isBusy } from '../../../src/drivers/sqlite-failures.js'

export type RuntimeName = keyof typeof RUNTIMES

export interface Folder {
  path(name: string): string
  remove(): void
}

/** A folder of its own, on a real disk; readable for everybody, as some tests run a process as another user. */
export function makeFolder(): Folder {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  chmodSync(folder, 0o755)
  return {
    path: (name) => join(folder, name),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The same, removed when the test ends. */
export function tempFolder(): Folder {
  const folder = makeFolder()
  onTestFinished(() => folder.remove())
  return folder
}

export interface Client extends Connection {
  readonly id: string
  readonly news: Push[]
  /** Resolves with the first news of that kind, also if it came before. */
  told(type: Push['type']): Promise<Push>
}

/** A client that remembers its news. It is closed when the test ends. */
export function connect(store: Store, options: { id?: string; space?: string } = {}): Client {
  const { id = systemEnv.id(), space = 'test' } = options
  const news: Push[] = []
  const waiting = new Set<() => void>()
  const context: ClientContext = {
    id,
    space,
    push(push) {
      news.push(push)
      for (const look of waiting) look()
    },
  }
  const connection = store.connect(context)
  onTestFinished(() => connection.close())
  const told = (type: Push['type']): Promise<Push> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = news.find((push) => push.type === type)
        if (!found) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return Object.assign(connection, { id, news, told })
}

export function request(resource: string, id: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    resource,
    id,
    permits: EXCLUSIVE,
    capacity: EXCLUSIVE,
    leaseMs: 30_000,
    presenceMs: 30_000,
    maxHoldMs: null,
    mode: 'queue',
    floor: 0,
    block: 1,
    info: '',
    ...more,
  }
}

export function beat(
  resource: string,
  id: string,
): { resource: string; id: string; leaseMs: number; presenceMs: number } {
  return { resource, id, leaseMs: 30_000, presenceMs: 30_000 }
}

/** The machine, with a clock that can be set. */
export interface TestEnv extends Env {
  nowMs: number
}

export function testEnv(startMs: number): TestEnv {
  const env = { ...systemEnv, nowMs: startMs, now: () => env.nowMs }
  return env
}

/** Another user of the file, below the store. */
export async function openRaw(path: string): Promise<SqliteDatabase> {
  const database = (await loadDriver()).open(path)
  onTestFinished(() => database.close())
  return database
}

/** Asks a raw user for one value. It may not be its turn just now: SQLite itself never waits here. */
export function ask(database: SqliteDatabase, sql: string): unknown {
  for (;;) {
    try {
      return Object.values(database.prepare(sql).get() ?? {})[0]
    } catch (error) {
      if (!isBusy(error)) throw error
    }
  }
}

export const CHILD = fileURLToPath(new URL('child.mjs', import.meta.url))

/** On which runtimes processes are started, in turn: see scripts/runtimes.mjs. */
const RUNTIMES_IN_TURN = (process.env['HOLDFAST_TEST_RUNTIMES'] ?? 'node').split(',') as RuntimeName[]
let started = 0

function nextRuntime(): RuntimeName {
  started += 1
  return RUNTIMES_IN_TURN[started % RUNTIMES_IN_TURN.length] ?? 'node'
}

/** A process that runs the built store. See child.mjs for what it can do. */
export class Child {
  readonly process: ChildProcess
  readonly exit: Promise<number | null>
  readonly #messages: unknown[] = []
  #hasEnded = false
  #wake = (): void => {}

  constructor(args: string[], options: { uid?: number; runtime?: RuntimeName } = {}) {
    const { runtime = nextRuntime(), ...more } = options
    const { execPath, execArgv } = RUNTIMES[runtime]
    this.process = fork(CHILD, args, { ...more, execPath, execArgv })
    this.process.on('message', (message) => {
      this.#messages.push(message)
      this.#wake()
    })
    // Its last words may arrive after its end.
    const silence = new Promise<void>((resolve) => this.process.once('disconnect', resolve))
    this.exit = new Promise((resolve) => this.process.once('exit', resolve))
    void Promise.all([silence, this.exit]).then(() => {
      this.#hasEnded = true
      this.#wake()
    })
    onTestFinished(async () => {
      this.process.kill('SIGKILL')
      await this.exit
    })
  }

  send(message: unknown): void {
    if (this.process.connected) this.process.send(message as object, () => {})
  }

  /** The next message; rejects if the process ends without one. */
  async next<T>(): Promise<T> {
    while (this.#messages.length === 0) {
      if (this.#hasEnded) throw new Error(`The child ended (${this.process.exitCode}) without a word`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#messages.shift() as T
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.exit
  }
}
