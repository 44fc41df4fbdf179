// Folders of .cache that are filled once, and again when what they are made of changes.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from './ensure.mjs'

export class FetchedFolder {
  #stamp
  #files
  #seed

  /** `files`: the files it is made of. `seed`: a text that is a source of it, too. */
  constructor(name, stamp, files, seed = '') {
    this.path = join(root, '.cache', name)
    this.#stamp = join(this.path, stamp)
    this.#files = files
    this.#seed = seed
  }

  /** `absent`, `outdated` or `current`. */
  get state() {
    if (!existsSync(this.#stamp)) return 'absent'
    return readFileSync(this.#stamp, 'utf8') === this.#hash() ? 'current' : 'outdated'
  }

  /**
   * Runs the commands in the empty folder, with copies of some files in it. Returns what went wrong,
   * if anything.
   */
  fill(commands, { limitMs, copies = [] }) {
    rmSync(this.path, { recursive: true, force: true })
    mkdirSync(this.path, { recursive: true })
    for (const file of copies) copyFileSync(file, join(this.path, basename(file)))
    const options = { cwd: this.path, encoding: 'utf8', timeout: limitMs }
    for (const [program, ...args] of commands) {
      const { status, error, stderr, stdout } = spawnSync(program, args, options)
      if (status !== 0) return error?.message ?? `${stderr}${stdout}`.trim().split('\n').at(-1)
    }
    // Last, so that half a fetch does not count.
    writeFileSync(this.#stamp, this.#hash())
    return 'fetched, but not found'
  }

  #hash() {
    const hash = createHash('sha256').update(this.#seed)
    for (const file of this.#files) hash.update(readFileSync(file))
    return hash.digest('hex')
  }
}
