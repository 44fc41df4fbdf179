import { HoldfastError, invalid } from '../../base/errors.js'
import { firstLine, type Loader } from '../../drivers/packages.js'

interface Wanted<Name extends string> {
  readonly loaders: Readonly<Record<Name, Loader>>
  /** Only this one; undefined: the first that is installed, in the order of the loaders. */
  readonly name: Name | undefined
  /** What the packages are, for the error: `Redis client`. */
  readonly what: string
  readonly store: string
}

/** The named package, or the first that is installed. */
export async function loadPackage<Name extends string>(
  wanted: Wanted<Name>,
): Promise<{ name: Name; module: unknown }> {
  const { loaders, what, store } = wanted
  const names = wanted.name === undefined ? (Object.keys(loaders) as Name[]) : [wanted.name]
  const failures: string[] = []
  for (const name of names) {
    const loaded = await loaders[name]()
    if ('module' in loaded) return { name, module: loaded.module }
    failures.push(`${name}: ${firstLine(loaded.error)}`)
  }
  const message = `No ${what} is installed; run: npm install ${names[0]} (${failures.join('; ')})`
  throw new HoldfastError('UNSUPPORTED', message, { store })
}

/** The module, or its default export where a bundler gives only that. */
export function moduleWith<T>(name: string, module: unknown): T {
  const { default: inner } = module as { default?: unknown }
  return (name in Object(module) ? module : inner) as T
}

/** Checks the option `driver`. */
export function checkPackage<Name extends string>(name: unknown, known: readonly Name[]): Name {
  if (known.includes(name as Name)) return name as Name
  throw invalid(`driver is '${String(name)}', but must be one of ${known.join(', ')}`)
}
