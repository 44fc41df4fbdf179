/** A piece of a text from outside: shown as it is, or as the code of a character that hides. */
export type Piece = { text: string; isHidden: boolean }

/**
 * Characters that change how their neighbours look, or that cannot be seen: control characters, the
 * soft hyphen, zero-width and bidirectional ones, separators, variation selectors, tags.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\S ]/u

/** Spaces at the ends, which nobody would see. */
const OUTER_SPACES = /^ +| +$/g

/** Cuts a text into pieces, so that hidden characters can be shown by their code. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  const marked = text.replace(OUTER_SPACES, (spaces) => '\u2423'.repeat(spaces.length))
  for (const char of marked) {
    const isHidden = HIDDEN.test(char)
    const shown = isHidden ? codeOf(char) : char
    const last = pieces.at(-1)
    if (last && last.isHidden === isHidden) last.text += shown
    else pieces.push({ text: shown, isHidden })
  }
  return pieces
}

/** The same in one string, for a tooltip. */
export function visible(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join('')
}

/** What went wrong, for people. The message may quote a name that another process chose. */
export function wordsOf(error: unknown): string {
  return visible(error instanceof Error ? error.message : String(error))
}

/** At most so many characters. What is longer loses its middle: both ends tell names apart. */
export function shortened(text: string, most: number): string {
  const chars = [...text]
  if (chars.length <= most) return text
  const tail = Math.floor((most - 1) / 3)
  return `${chars.slice(0, most - 1 - tail).join('')}…${chars.slice(chars.length - tail).join('')}`
}

function codeOf(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
}
