import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const folder = join(import.meta.dirname, 'programs')
/** Only ends what hangs. */
const HANGS_AFTER_MS = 50_000

/** What a program is given in place of what its import lines say. */
export type Replacements = Readonly<Record<string, string>>

/** Runs programs whose import lines are changed, and nothing else. */
export class Programs {
  /** Inside the package, so that `import 'holdfast/redlock'` leads to its own build. */
  readonly #copies: string

  constructor(readonly redisUrl: string) {
    mkdirSync(join(root, '.cache'), { recursive: true })
    this.#copies = mkdtempSync(join(root, '.cache/redlock-'))
  }

  /** What it prints. */
  run(file: string, replacements: Replacements = {}): Promise<string> {
    const copy = join(this.#copies, basename(file))
    let code = text(file)
    for (const [from, to] of Object.entries(replacements)) code = code.replace(from, to)
    writeFileSync(copy, code)
    const options = {
      encoding: 'utf8',
      timeout: HANGS_AFTER_MS,
      env: { ...process.env, REDIS_URL: this.redisUrl },
    } as const
    return new Promise((resolve, reject) => {
      execFile(process.execPath, [copy], options, (error, stdout, stderr) =>
        error ? reject(new Error(`${file}: ${error.message}\n${stdout}`)) : resolve(stdout + stderr),
      )
    })
  }

  remove(): void {
    rmSync(this.#copies, { recursive: true, force: true })
  }
}

export function text(file: string): string {
  return readFileSync(join(folder, file), 'utf8')
}

/** The file beside the programs. */
export function beside(file: string): string {
  return join(folder, file)
}
