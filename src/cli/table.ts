import { pad, widthOf } from './width.js'

/** Rows under their headings, each column as wide as its widest cell. */
export function table(headings: string[], rows: string[][]): string {
  return tableLines(headings, rows).join('\n')
}

/** The same line by line, the headings first. */
export function tableLines(headings: string[], rows: string[][]): string[] {
  const lines = [headings, ...rows.map((row) => row.map(printable))]
  const widths = headings.map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, widthOf(line[column] ?? '')), 0),
  )
  return lines.map((line) =>
    line
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/**
 * Escapes control characters: names and labels come from other users and must not reach the
 * terminal raw.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches them on purpose
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/**
 * JSON that a terminal can show as well: JSON itself leaves some control characters as they are.
 */
export function printableJson(value: unknown, indent = 0): string {
  return printableLines(JSON.stringify(value, null, indent))
}

/** As `printable`, for a text that has lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
