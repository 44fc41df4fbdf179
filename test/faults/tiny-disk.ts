import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { runWithWill, type Testator } from '../servers/last-will.js'

/** A disk of a few megabytes, to be filled. */
export class TinyDisk {
  readonly folder: string
  /** Unmounts it also when the run is killed. */
  readonly #will: Testator

  constructor(folder: string, megabytes: number) {
    this.folder = folder
    mkdirSync(folder)
    const { status, stderr } = spawnSync('mount', [
      '-t',
      'tmpfs',
      '-o',
      `size=${megabytes}m`,
      'tmpfs',
      folder,
    ])
    if (status !== 0) throw new Error(`No disk in memory: ${stderr}`)
    this.#will = runWithWill(['true'], `umount -l '${folder}'`)
  }

  /** To the last byte. */
  fill(): void {
    const file = openSync(this.#filler, 'a')
    try {
      for (let size = 65_536; size >= 1; size /= 16) for (;;) if (!hasWritten(file, size)) break
    } finally {
      closeSync(file)
    }
  }

  empty(): void {
    rmSync(this.#filler, { force: true })
  }

  /** The processes that use it have to end first. */
  dispose(): void {
    spawnSync('umount', ['-l', this.folder])
    this.#will.revoke()
  }

  get #filler(): string {
    return join(this.folder, 'filler')
  }
}

function hasWritten(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size
  } catch {
    return false
  }
}

/** null: one can be had. Otherwise why not. */
export function noTinyDisk(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root may mount a disk in memory'
  const folder = `/tmp/holdfast-mount-${process.pid}`
  mkdirSync(folder)
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder])
  if (status === 0) spawnSync('umount', [folder])
  rmSync(folder, { recursive: true, force: true })
  return status === 0 ? null : 'no disk in memory can be mounted here'
}
