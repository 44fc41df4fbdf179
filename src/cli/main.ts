#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { EXIT } from './exit-codes.js'
import { describeFailure, exitCodeOf, say, usageError } from './failures.js'
import { helpFor } from './help.js'
import { printableLines } from './table.js'
import { hideSqliteWarning } from './warnings.js'

type Command = (args: string[]) => Promise<number>

// Imported on demand: `--help` and a typing error should not wait for the rest of the library.
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import('./run.js')).run,
  ls: async () => (await import('./ls.js')).ls,
  top: async () => (await import('./top.js')).top,
  watch: async () => (await import('./watch.js')).watch,
  doctor: async () => (await import('./doctor.js')).doctor,
  break: async () => (await import('./break.js')).breakCommand,
  serve: async () => (await import('./serve.js')).serve,
  schema: async () => (await import('./schema.js')).schema,
}

async function main(args: string[]): Promise<number> {
  const [first, ...rest] = args
  if (first === undefined) {
    process.stderr.write(helpFor())
    return EXIT.usage
  }
  if (first === '--version' || first === '-V') return print(`${version()}\n`)
  if (first === '--help' || first === '-h' || first === 'help') return print(helpFor(rest[0]))
  const load = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined
  if (load === undefined)
    throw usageError(`unknown ${first.startsWith('-') ? 'option' : 'command'} '${first}'`)
  if (asksForHelp(rest)) return print(helpFor(first))
  const command = await load()
  return command(rest)
}

function asksForHelp(args: string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function print(text: string): number {
  process.stdout.write(text)
  return EXIT.ok
}

function version(): string {
  const file = join(__dirname, '../../../package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

// `holdfast ls | head -1` closes the pipe early, which is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return
  say(`the output cannot be written: ${error.message}`)
  process.exit(EXIT.internal)
})
// Its terminal or pipe may be gone: `holdfast run` still has to end its command and to release.
process.stderr.on('error', () => {})
hideSqliteWarning()
main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error) => {
    say(describeFailure(error))
    if (process.env['HOLDFAST_DEBUG'] === '1') process.stderr.write(`${printableLines(inspect(error))}\n`)
    process.exitCode = exitCodeOf(error)
  },
)
