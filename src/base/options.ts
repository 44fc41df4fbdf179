import { invalid } from './errors.js'

/** The names of all options of `T`, for `checkOptions`. The type requires every one of them. */
export type OptionNames<T> = { readonly [Name in keyof T]-?: true }

/**
 * Refuses options that are no object, and unknown names: `acquire('5s')` and `acquire({ wiat: '5s'
 * })` would otherwise wait for ever.
 */
export function checkOptions<T extends object>(
  options: T,
  names: OptionNames<NoInfer<T>>,
  example: string,
): T {
  if (typeof options !== 'object' || options === null)
    throw invalid(`options must be an object, such as ${example}`)
  // Object.keys() would make an array for every acquisition.
  for (const name in options) if (names[name] !== true) throw invalid(unknownOption(name, Object.keys(names)))
  return options
}

/** The message for an unknown option. */
export function unknownOption(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  const advice = nearest === undefined ? `known are ${known.join(', ')}` : `did you mean '${nearest}'?`
  return `There is no option '${name}'; ${advice}`
}

/** The known name that was probably meant: at most a third of the letters differ. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const byDistance = known
    .map((each) => ({ each, distance: editDistance(name.toLowerCase(), each.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  const isNear = byDistance !== undefined && byDistance.distance * 3 <= Math.max(name.length, 4)
  return isNear ? byDistance.each : undefined
}

/** The number of letters that were added, left out, replaced, or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  let [before, row] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const steps = [at(row, j) + 1, at(next, j - 1) + 1, at(row, j - 1) + (isSame ? 0 : 1)]
      if (isSwap) steps.push(at(before, j - 2) + 1)
      next.push(Math.min(...steps))
    }
    before = row
    row = next
  }
  return at(row, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
