/** Takes two columns of a terminal: East Asian text, most emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
/** Takes none: marks that combine with the character before, joiners. */
const NARROW = /[\p{Mn}\p{Me}\u200b-\u200f\u2060\ufeff]/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range begins with a control character
const PLAIN = /^[\u0000-\u02ff\u2026]*$/

/** How many columns of a terminal the text takes, as far as that can be told. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** The text, cut to so many columns. */
export function clip(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  if (columns < 1) return ''
  let kept = ''
  let width = 1
  for (const character of text) {
    width += columnsOf(character)
    if (width > columns) break
    kept += character
  }
  return `${kept}…`
}

/** The text, filled up with spaces to so many columns. */
export function pad(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)))
}

function columnsOf(character: string): number {
  if (NARROW.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
