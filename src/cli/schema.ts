import { SCHEMA_STORES, schemaOf } from '../primitives/schemas.js'
import { readArguments } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'

const OPTIONS = { schema: { type: 'string' } } as const

/**
 * Prints the SQL that creates what a store needs, for applications that may not create it
 * themselves.
 */
export async function schema(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('schema', args, OPTIONS)
  const [store = '', ...others] = positionals
  const text = others.length > 0 ? null : await schemaOf(store, values.schema)
  if (text === null) throw usageError(`schema takes one of ${SCHEMA_STORES.join(', ')}`, 'schema')
  process.stdout.write(text)
  return EXIT.ok
}
