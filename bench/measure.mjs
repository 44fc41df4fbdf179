// How everything is measured: rounds of all contestants in turn, so that a busy moment of the
// machine hits all of them; medians.

/** How long each contestant runs before it is measured: a service runs for days, and not on cold code. */
export const WARM_UP_MS = 1500

/** Runs `once` again and again for `ms`; gives the number of repetitions per second. */
export async function perSecond(ms, once) {
  const start = performance.now()
  let count = 0
  while (performance.now() - start < ms) {
    await once()
    count++
  }
  return count / ((performance.now() - start) / 1000)
}

/**
 * `tasks` loops at once, each with its own number; gives repetitions per second of all together.
 */
export async function perSecondTogether(ms, tasks, once) {
  const rates = await Promise.all(Array.from({ length: tasks }, (_, task) => perSecond(ms, () => once(task))))
  return rates.reduce((sum, rate) => sum + rate, 0)
}

/**
 * contestants: { name: async () => number }. One warm-up round, then `rounds` interleaved ones.
 * Gives { name: median }.
 */
export async function medians(rounds, contestants) {
  const figures = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, measure] of Object.entries(contestants)) {
      const figure = await measure()
      if (round > 0) figures[name].push(figure)
    }
  }
  return Object.fromEntries(Object.entries(figures).map(([name, values]) => [name, median(values)]))
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** Every table of this run, for `--json`. */
export const tables = []

/** Prints rows of { name: figure }, each as a ratio to the peer. */
export function table(title, unit, rows, peer) {
  tables.push({ title, unit, peer, rows })
  console.log(`\n${title}`)
  for (const [name, figure] of Object.entries(rows)) {
    const ratio = name === peer ? '1' : (figure / rows[peer]).toPrecision(3)
    console.log(
      `  ${name.padEnd(28)} ${Math.round(figure).toLocaleString('en').padStart(10)} ${unit}   ${ratio.padStart(7)} × ${peer}`,
    )
  }
}
