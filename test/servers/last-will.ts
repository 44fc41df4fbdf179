import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

export interface Testator {
  readonly child: ChildProcess
  /** The will is no longer needed. */
  revoke(): void
}

/**
 * Runs a command, with a will that is carried out should this process end without revoking it,
 * however abruptly: kill -9 of a test run leaves nothing behind. The kernel closes our end of a
 * pipe when we die; a small shell waits at the other end. In the will, `$$` is the command's
 * process id.
 */
export function runWithWill(command: readonly string[], will: string, options: SpawnOptions = {}): Testator {
  const watch = `trap '' INT TERM HUP; read -r line <&3 || { ${will}; }`
  const script = `( ${watch} ) </dev/null >/dev/null 2>&1 & exec "$@" 3<&-`
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...command], {
    ...options,
    // Its own process group: an interruption at the terminal is ours to handle.
    detached: true,
    stdio: ['ignore', ...outputs(options), 'pipe'],
  })
  const pipe = child.stdio[3] as Writable & { unref(): void }
  pipe.on('error', () => {})
  pipe.unref()
  child.unref()
  return { child, revoke: () => pipe.end('done\n') }
}

function outputs({ stdio }: SpawnOptions): ('ignore' | number)[] {
  return Array.isArray(stdio) ? (stdio as number[]) : ['ignore', 'ignore']
}
