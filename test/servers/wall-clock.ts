import { spawnSync } from 'node:child_process'
import { chmodSync, closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * A wall clock that the tests move, for the processes that are started with its environment. Their
 * monotonic clock is left alone.
 */
export class WallClock {
  /** null: it works. Otherwise why the clock of a process cannot be moved here. */
  readonly obstacle: string | null
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-wall-clock-'))

  constructor() {
    // PostgreSQL runs as a user of its own.
    chmodSync(this.#folder, 0o755)
    this.set(0)
    this.obstacle = compile(this.#shim)
  }

  get env(): Record<string, string> {
    return { LD_PRELOAD: this.#shim, HOLDFAST_WALL_OFFSET: this.#offsetFile }
  }

  /** Takes effect at once, in running processes as well. */
  set(offsetSeconds: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(offsetSeconds))
    // Never truncated: processes have it mapped.
    const file = openSync(this.#offsetFile, constants.O_RDWR | constants.O_CREAT)
    writeSync(file, bytes, 0, 8, 0)
    closeSync(file)
  }

  /** Removes its files. The processes that use it have to end first. */
  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #shim(): string {
    return join(this.#folder, 'wall-clock.so')
  }

  get #offsetFile(): string {
    return join(this.#folder, 'offset')
  }
}

function compile(shim: string): string | null {
  if (process.platform !== 'linux') return 'LD_PRELOAD is of Linux'
  const source = fileURLToPath(new URL('wall-clock.c', import.meta.url))
  const args = ['-shared', '-fPIC', '-O2', '-o', shim, source]
  const { error, status, stderr } = spawnSync(process.env['CC'] ?? 'gcc', args)
  if (error) return 'no C compiler here'
  return status === 0 ? null : `the C compiler failed: ${stderr}`
}
