import { type ParseArgsConfig, parseArgs } from 'node:util'
import { usageError } from './failures.js'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true; strict: true }>
>['values']

/** The options of every command that uses a store. */
export const STORE_OPTIONS = {
  store: { type: 'string' },
  space: { type: 'string' },
} as const satisfies Options

/**
 * Parses the arguments of one command. An unknown one is a usage error that names the command's
 * help.
 */
export function readArguments<T extends Options>(command: string, args: string[], options: T) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true })
    return { values: values as Values<T>, positionals }
  } catch (error) {
    throw usageError(firstSentence(error), command)
  }
}

/** The one NAME that a command takes. */
export function onlyName(command: string, positionals: string[]): string {
  const [name, ...others] = positionals
  if (name === undefined) throw usageError('the NAME of the resource is missing', command)
  if (others.length > 0)
    throw usageError(`one NAME is expected, but there is also '${others.join(' ')}'`, command)
  return name
}

// After the first sentence, parseArgs adds advice about positionals that does not apply here.
function firstSentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const sentence = message.split(/\.\s|\n/)[0] ?? message
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}
