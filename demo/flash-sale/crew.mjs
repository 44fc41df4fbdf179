import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The worker processes of the demonstration. None of them outlives it. */
export class Crew {
  /** @type {Set<import('node:child_process').ChildProcess>} */
  #workers = new Set()

  /**
   * Starts a file of this folder as a process of its own.
   * @param {string} file
   * @param {string[]} args
   */
  start(file, args) {
    const path = fileURLToPath(new URL(file, import.meta.url))
    // Later versions of Node would say in each process that their built-in SQLite is experimental.
    const worker = fork(path, args, { execArgv: ['--disable-warning=ExperimentalWarning'] })
    this.#workers.add(worker)
    worker.once('exit', () => this.#workers.delete(worker))
    return worker
  }

  /** Ends whoever is still there, also a stopped one. */
  dismiss() {
    for (const worker of this.#workers) worker.kill('SIGKILL')
  }
}

/**
 * Resolves when the worker has ended as it should.
 * @param {import('node:child_process').ChildProcess} worker
 * @returns {Promise<void>}
 */
export function ended(worker) {
  let reason = 'a worker failed'
  worker.on('message', (/** @type {{ event: string, reason: string }} */ message) => {
    if (message.event === 'failed') reason = message.reason
  })
  return new Promise((resolve, reject) => {
    worker.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(reason))))
  })
}
