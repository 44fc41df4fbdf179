import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Something that is loaded into a process before its libraries. */
export interface Preload {
  readonly env: Readonly<Record<string, string>>
}

/** Compiles a C file of this folder. Returns null, or why that is not possible here. */
export function compile(source: string, library: string): string | null {
  if (process.platform !== 'linux') return 'LD_PRELOAD is of Linux'
  const path = fileURLToPath(new URL(source, import.meta.url))
  const args = ['-shared', '-fPIC', '-O2', '-o', library, path]
  const { error, status, stderr } = spawnSync(process.env['CC'] ?? 'gcc', args)
  if (error) return 'no C compiler here'
  return status === 0 ? null : `the C compiler failed: ${stderr}`
}

/** The environment of a process with all of them. */
export function preloaded(...preloads: readonly (Preload | undefined)[]): Record<string, string> {
  const all = preloads.flatMap((each) => (each ? [each.env] : []))
  const libraries = all.flatMap(({ LD_PRELOAD }) => LD_PRELOAD ?? [])
  return { ...Object.assign({}, ...all), ...(all.length > 0 && { LD_PRELOAD: libraries.join(':') }) }
}
