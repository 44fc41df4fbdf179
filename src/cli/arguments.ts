import { type ParseArgsConfig, parseArgs } from 'node:util'
import { usageError } from './failures.js'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true; strict: true }>
>['values']

/** The options every command has, because every command talks to a store. */
export const STORE_OPTIONS = {
  store: { type: 'string' },
  space: { type: 'string' },
} as const satisfies Options

/** Reads the arguments of one command; what it does not know is a usage error that names the command's help. */
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

// parseArgs adds advice of its own after the first sentence, which is about positionals and leads astray here.
function firstSentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const sentence = message.split(/\.\s|\n/)[0] ?? message
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}
