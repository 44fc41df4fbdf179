/**
 * Loads one optional package. Each loader imports its package by a literal name, inside `try`: a
 * bundler then includes a package that is installed, and only warns of one that is not.
 */
export type Loader = () => Promise<{ readonly module: unknown } | { readonly error: unknown }>

/** Why a package could not be loaded, short enough to list several. */
export function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n', 1)[0] ?? ''
}
