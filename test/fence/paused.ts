import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))
const LEASE_MS = 1000

interface Outcome {
  isValid: boolean
  written?: string
  code?: string
  newestFence?: number
  message?: string
}

/** A folder that goes with the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fence-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A process of its own, and the messages it sends, one after the other. */
export class Worker {
  readonly process: ChildProcess
  readonly ended: Promise<unknown>
  readonly #messages: AsyncIterator<unknown[]>

  constructor(file: string, order: unknown) {
    const execArgv = ['--disable-warning=ExperimentalWarning']
    this.process = fork(file, [JSON.stringify(order)], { execArgv })
    this.ended = new Promise((resolve) => this.process.once('exit', resolve))
    const close = new AbortController()
    void this.ended.then(() => close.abort(new Error('the worker has ended')))
    this.#messages = on(this.process, 'message', { signal: close.signal })
    onTestFinished(async () => {
      this.process.kill('SIGKILL')
      await this.ended
    })
  }

  async next<T>(): Promise<T> {
    const { value } = await this.#messages.next()
    return value[0] as T
  }

  async write(content: string): Promise<Outcome> {
    this.process.send(content)
    return this.next()
  }
}

/**
 * The scenario of docs/fencing.md, with real processes and a real lock: A takes the lock and is stopped; its lease ends, B takes the
 * lock and writes; A goes on and writes, too. `read` gives what is stored.
 */
export async function pausedWorkerIsRefused(target: object, read: () => Promise<unknown>): Promise<void> {
  const store = `sqlite:${join(tempFolder(), 'locks.db')}`
  const start = (pauses: boolean): Worker =>
    new Worker(WORKER, { store, resource: 'order:42', lease: LEASE_MS, pauses, target })

  const a = start(true)
  const { fence: fenceOfA } = await a.next<{ fence: number }>()
  const b = start(false)
  const { fence: fenceOfB } = await b.next<{ fence: number }>()
  expect(fenceOfB).toBeGreaterThan(fenceOfA)
  expect(await b.write('first of B')).toMatchObject({ written: 'first of B' })

  a.process.kill('SIGCONT')
  const refused = await a.write('late write of A')
  expect(refused).toMatchObject({ isValid: false, code: 'STALE_FENCE', newestFence: fenceOfB })
  expect(refused.message).toMatch(/acquire again/)
  expect(await read()).toBe('first of B')

  // The holder itself may write as often as it likes.
  expect(await b.write('second of B')).toMatchObject({ written: 'second of B' })
  expect(await read()).toBe('second of B')
}
