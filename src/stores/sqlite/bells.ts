import { createHash } from 'node:crypto'
import { type FSWatcher, mkdirSync, rmdirSync, rmSync, utimesSync, watch, writeFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { detached, type Env } from '../../base/env.js'

/** Owners touch their bells every minute; one that was not touched for so long has no owner any more. */
const DEAD_AFTER_MS = 10 * 60_000

/**
 * The bells beside the file: one empty file for each client that has to be woken; touching it rings it. Only an accelerator, so
 * nothing here throws: where a bell cannot be hung or heard, the engine asks a little later.
 */
export class Bells {
  readonly #folder: string
  readonly #env: Env
  /** null: could not be hung; tried again after the next `touch`. */
  readonly #hung = new Map<string, FSWatcher | null>()

  constructor(path: string, env: Env) {
    this.#folder = `${path}-bells`
    this.#env = env
  }

  /** Rings a client's bell, whichever process it lives in. */
  ring(address: string): void {
    quietly(() => this.#touch(address))
  }

  /** Hangs up a bell. Says whether it is new: then news may have come before it hung. */
  hang(address: string, onRing: () => void): boolean {
    if (this.#hung.has(address)) return false
    this.#hung.set(address, null)
    // Outside the flow of the caller whose claim happened to wait first.
    quietly(() => detached(() => this.#hung.set(address, this.#watch(address, onRing))))
    return this.#hung.get(address) !== null
  }

  takeDown(address: string): void {
    const watcher = this.#hung.get(address)
    this.#hung.delete(address)
    if (!watcher) return
    watcher.close()
    quietly(() => rmSync(this.#path(address), { force: true }))
    // Succeeds for the last one only.
    if (this.#hung.size === 0) quietly(() => rmdirSync(this.#folder))
  }

  /** Shows that the own bells have an owner. */
  touch(): void {
    for (const [address, watcher] of this.#hung) {
      if (watcher) this.ring(address)
      else this.#hung.delete(address)
    }
  }

  /** Removes some of the bells that nobody has touched for long. Their owners, if they only slept, hang up new ones. */
  async sweep(most: number): Promise<void> {
    try {
      const names = await readdir(this.#folder)
      // Somewhere else each time, so that all of a very full folder are looked at in the end.
      const start = Math.floor(this.#env.random() * Math.max(1, names.length - most))
      for (const name of names.slice(start, start + most)) {
        const path = join(this.#folder, name)
        const { mtimeMs } = await stat(path)
        if (mtimeMs < this.#env.wallMs() - DEAD_AFTER_MS) await rm(path, { force: true })
      }
    } catch {
      // No folder: nobody has waited yet. Anything else: the next one who comes by may succeed.
    }
  }

  #watch(address: string, onRing: () => void): FSWatcher {
    const path = this.#path(address)
    try {
      this.#create(path)
    } catch {
      // The last one to leave may have removed the folder just now.
      this.#create(path)
    }
    const watcher = watch(path, { persistent: false }, (event) => {
      // Swept or removed by hand: the next wait hangs up a new one.
      if (event === 'rename') this.takeDown(address)
      onRing()
    })
    watcher.on('error', () => watcher.close())
    return watcher
  }

  #create(path: string): void {
    mkdirSync(this.#folder, { recursive: true })
    writeFileSync(path, '')
  }

  #touch(address: string): void {
    const seconds = this.#env.wallMs() / 1000
    utimesSync(this.#path(address), seconds, seconds)
  }

  /** Client ids are opaque, so their hash is the name: it is short and fits every file system. */
  #path(address: string): string {
    return join(this.#folder, createHash('sha256').update(address).digest('hex').slice(0, 32))
  }
}

function quietly(work: () => void): void {
  try {
    work()
  } catch {
    // See above: a bell that fails costs a tenth of a second.
  }
}
