// Which cases of the conformance suite to run, where not all of them are. It stands alone, so that
// other runtimes can load it.

/** Every case once: one that comes in several guises is run in one of them, another one each time. */
export const EACH_ONCE = 'each case once'

const GUISE = / \((?:writer|only permit|last permit)\)$/

/**
 * @template {{ title: string }} C
 * @param {readonly C[]} cases
 * @param {typeof EACH_ONCE | { part: number, of: number }} share
 * @returns {readonly C[]}
 */
export function dealt(cases, share) {
  if (typeof share !== 'string') return cases.filter((_each, index) => index % share.of === share.part)
  const byTitle = new Map()
  for (const each of cases) byTitle.set(plainTitle(each), [...(byTitle.get(plainTitle(each)) ?? []), each])
  return [...byTitle.values()].map((guises, index) => guises[index % guises.length])
}

/**
 * The title without the lock that it is run with.
 * @param {{ title: string }} one
 */
export function plainTitle({ title }) {
  return title.replace(GUISE, '')
}
