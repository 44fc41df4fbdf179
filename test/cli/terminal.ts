import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Bench, type Running, until } from './processes.js'

const MAIN = fileURLToPath(new URL('../../dist/cjs/cli/main.js', import.meta.url))

/** Whether `script` of util-linux is there: tests that need it say so in their titles. */
export function hasScript(): boolean {
  try {
    execFileSync('/bin/sh', ['-c', 'command -v script'])
    return true
  } catch {
    return false
  }
}

/** The command line of `holdfast` for a shell. */
export function commandOf(args: readonly string[]): string {
  return [process.execPath, MAIN, ...args].map((part) => `'${part.replaceAll("'", "'\\''")}'`).join(' ')
}

/**
 * `holdfast` in a terminal of its own. Afterwards the shell prints the exit code and the settings of the terminal, and says when it is done.
 * Its pid comes first: it replaces the shell that prints it.
 */
export function inTerminal(bench: Bench, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  const inner = `echo "pid $$"; exec ${commandOf(args)}`.replaceAll("'", "'\\''")
  const outer = `stty rows 12 cols 70; sh -c '${inner}'; echo "code $?"; stty -a; echo over`
  return bench.start('script', ['--quiet', '--flush', '--command', outer, '/dev/null'], {
    TERM: 'xterm',
    ...env,
  })
}

/** What a terminal does last, whatever has happened before: back to the first screen, with a cursor. */
export function isRestored(output: string): boolean {
  const [, after = ''] = output.split(/code \d+/)
  return (
    output.lastIndexOf('\u001b[?1049l') > output.lastIndexOf('\u001b[?1049h') &&
    output.lastIndexOf('\u001b[?25h') > output.lastIndexOf('\u001b[?25l') &&
    / icanon/.test(after) &&
    / echo /.test(after)
  )
}

/**
 * A window of tmux, with a server of its own. After the command, its shell prints the exit code and stays: tmux itself sometimes does not
 * notice that a command has ended.
 */
export class Tmux {
  readonly #socket = `holdfast-${randomBytes(4).toString('hex')}`
  readonly #env: NodeJS.ProcessEnv

  constructor(bench: Bench, command: string, columns: number, rows: number) {
    this.#env = { ...bench.env, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' }
    const size = ['-x', String(columns), '-y', String(rows)]
    this.#run('-f', '/dev/null', 'new-session', '-d', ...size, `${command}; echo "code $?"; read end`)
    onTestFinished(() => {
      try {
        this.#run('kill-server')
      } catch {
        // It has ended by itself.
      }
    })
  }

  /** The lines that the window shows. */
  lines(): string[] {
    return this.#run('capture-pane', '-p').trimEnd().split('\n')
  }

  shows(pattern: RegExp): Promise<string[]> {
    return until(`${pattern} in the window`, () => {
      const lines = this.lines()
      return pattern.test(lines.join('\n')) ? lines : null
    })
  }

  resize(columns: number, rows: number): void {
    this.#run('resize-window', '-x', String(columns), '-y', String(rows))
  }

  type(key: string): void {
    this.#run('send-keys', key)
  }

  #run(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...args], { env: this.#env, encoding: 'utf8' })
  }
}
