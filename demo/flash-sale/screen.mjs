/** What the demonstration prints: bars in a terminal, plain lines elsewhere. */
const isTerminal = process.stdout.isTTY === true
const WIDTH = 30

/** @param {string} text */
export function line(text) {
  process.stdout.write(`${text}\n`)
}

/**
 * A bar that fills up step by step; where it cannot be redrawn, one line at the end.
 * @param {string} label
 * @param {number} total
 */
export function bar(label, total) {
  let count = 0
  const startedAt = performance.now()
  const draw = () => {
    const filled = Math.round((count / total) * WIDTH)
    process.stdout.write(`\r   ${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${count}/${total} ${label}`)
  }
  return {
    step() {
      count += 1
      if (isTerminal) draw()
    },
    done() {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      if (isTerminal) line(` in ${seconds} s`)
      else line(`   ${count}/${total} ${label} in ${seconds} s`)
    },
  }
}

/** @param {{ what: string, outcome: string, isRight: boolean }[]} rows */
export function table(rows) {
  const width = (/** @type {string[]} */ cells) => Math.max(...cells.map((cell) => cell.length))
  const whatWidth = width(rows.map((row) => row.what))
  const outcomeWidth = width(rows.map((row) => row.outcome))
  return rows
    .map(({ what, outcome, isRight }) => {
      return `   ${what.padEnd(whatWidth)}   ${outcome.padEnd(outcomeWidth)}   ${isRight ? 'as it should be' : 'WRONG'}`
    })
    .join('\n')
}
