import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { EXIT } from './exit-codes.js'
import { CliError } from './failures.js'

/**
 * Fails before the wait for the lock if the command cannot be started. Exit codes and order as in
 * shells.
 */
export function checkCommand(command: string): void {
  const found = candidates(command)
  if (found.length === 0)
    throw new CliError(EXIT.notFound, `${command}: command not found`, 'Check its spelling and the PATH')
  if (!found.some(isExecutable)) throw notExecutable(command)
}

/** The error for a command that the system could not start. */
export function startFailure(command: string, error: NodeJS.ErrnoException): CliError {
  if (error.code === 'ENOENT')
    // The file was checked before, so the interpreter in its first line is missing.
    return new CliError(EXIT.notFound, `${command}: it, or the interpreter in its first line, was not found`)
  if (error.code === 'EACCES' || error.code === 'ENOEXEC') return notExecutable(command)
  return new CliError(EXIT.notExecutable, `${command}: cannot be started (${error.code ?? error.message})`)
}

function notExecutable(command: string): CliError {
  return new CliError(
    EXIT.notExecutable,
    `${command}: not executable`,
    'Make it so with chmod +x, or name its interpreter',
  )
}

/**
 * The files that the command may name. A path counts as it is: a folder exists but is not
 * executable.
 */
function candidates(command: string): string[] {
  if (command.includes('/')) return existsSync(command) ? [command] : []
  const path = process.env['PATH'] ?? '/usr/bin:/bin'
  return path
    .split(delimiter)
    .map((folder) => join(folder || '.', command))
    .filter(isFile)
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false // also where the user may not look into the folder
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return isFile(path)
  } catch {
    return false
  }
}
