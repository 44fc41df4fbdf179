const COLUMNS = 100

/** Wraps prose. */
export function paragraph(...parts: readonly string[]): string {
  const lines: string[] = []
  // A link or a piece of code stays on one line.
  for (const word of parts.join(' ').match(/(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+/g) ?? []) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= COLUMNS)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function number(value: number): string {
  return value.toLocaleString('en-US')
}

export function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
