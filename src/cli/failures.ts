import { type ErrorCode, HoldfastError } from '../base/errors.js'
import { EXIT } from './exit-codes.js'
import { printable } from './table.js'

/** A failure that the user can fix: one line, an exit code, and what to do next. */
export class CliError extends Error {
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(exitCode: number, message: string, hint?: string) {
    super(message)
    this.name = 'CliError'
    this.exitCode = exitCode
    this.hint = hint
  }
}

export function usageError(message: string, command?: string): CliError {
  return new CliError(
    EXIT.usage,
    message,
    `Try: holdfast ${command === undefined ? '' : `${command} `}--help`,
  )
}

const EXIT_OF: Partial<Record<ErrorCode, number>> = {
  ACQUIRE_TIMEOUT: EXIT.notAcquired,
  CANCELLED: EXIT.notAcquired,
  LINE_FULL: EXIT.notAcquired,
  HOLD_LOST: EXIT.holdLost,
  INVALID_ARGUMENT: EXIT.usage,
  CAPACITY_MISMATCH: EXIT.usage,
  STORE_UNAVAILABLE: EXIT.storeUnavailable,
  UNSUPPORTED: EXIT.storeUnavailable,
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode
  if (error instanceof HoldfastError) return EXIT_OF[error.code] ?? EXIT.internal
  return EXIT.internal
}

/** One line for people; HOLDFAST_DEBUG=1 also shows the stack. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return oneLine(String(error))
  if (error instanceof CliError && error.hint !== undefined) return oneLine(`${error.message}. ${error.hint}`)
  return oneLine(error.message)
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim()
}

export function say(message: string): void {
  process.stderr.write(`holdfast: ${printable(oneLine(message))}\n`)
}
