import {
  chmodSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile, type Preload } from './preload.js'

/** A disk that the tests make slow, for the processes that are started with its environment. */
export class SlowDisk implements Preload {
  /** null: it works. Otherwise why not. */
  readonly obstacle: string | null
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-slow-disk-'))

  constructor() {
    // PostgreSQL runs as a user of its own.
    chmodSync(this.#folder, 0o755)
    writeFileSync(this.#file, new BigInt64Array(2))
    chmodSync(this.#file, 0o666)
    this.obstacle = compile('slow-disk.c', this.#library)
  }

  get env(): Record<string, string> {
    return { LD_PRELOAD: this.#library, HOLDFAST_DISK_DELAY: this.#file }
  }

  /** Each sync takes so much longer, in running processes as well. */
  set(delayMs: number): void {
    const file = openSync(this.#file, constants.O_RDWR)
    writeSync(file, BigInt64Array.of(BigInt(1000 * delayMs)), 0, 8, 0)
    closeSync(file)
  }

  /** How many syncs took longer so far. */
  get delays(): number {
    return Number(readFileSync(this.#file).readBigInt64LE(8))
  }

  /** Removes its files. The processes that use it have to end first. */
  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #library(): string {
    return join(this.#folder, 'slow-disk.so')
  }

  get #file(): string {
    return join(this.#folder, 'delay')
  }
}
