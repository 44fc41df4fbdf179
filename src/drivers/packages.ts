import { HoldfastError } from '../base/errors.js'

/**
 * Loads one optional package. Each loader imports its package by a literal name, inside `try`: a
 * bundler then includes a package that is installed, and only warns of one that is not.
 */
export type Loader = () => Promise<{ readonly module: unknown } | { readonly error: unknown }>

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

/** What has an export of that name: the module, or its default export, where a bundler gives only that. */
export function moduleWith<T>(name: string, module: unknown): T {
  const { default: inner } = module as { default?: unknown }
  return (name in Object(module) ? module : inner) as T
}

export function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n', 1)[0] ?? ''
}
