/** The widest line of a comment or a page. */
export const MOST_COLUMNS = 100

/** The most words of an average sentence. */
export const MOST_WORDS = 18

/** Words that make a reader stop. Each is found across line breaks, too. */
const ODD = [
  'who(?:m|so)?ever',
  'those who',
  'for want of',
  'to be had',
  'be it',
  "nobody'?s business",
  'robbed',
  'tak(?:e|es|ing) leave',
  'keep(?:s|ing)? house',
  'a word to oneself',
  'he who',
]

/** A finding in a text, and where it begins. */
export interface OddWords {
  readonly index: number
  readonly words: string
}

/** The odd words of a text; `more`: further patterns that are odd there. */
export function oddWordsIn(text: string, more: readonly string[] = []): OddWords[] {
  const pattern = [...ODD, ...more].join('|').replaceAll(' ', '\\s+')
  const found = text.matchAll(new RegExp(`\\b(?:${pattern})\\b`, 'gi'))
  return Array.from(found, ({ 0: words, index }) => ({ index, words: words.replace(/\s+/g, ' ') }))
}
