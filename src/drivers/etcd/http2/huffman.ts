import { Code, Http2Error } from './errors.js'

/**
 * The length of each symbol's code in bits, as a digit of base 36 (RFC 7541, appendix B). The last
 * one is the end of the string. The codes follow from that: shorter ones first, then by symbol.
 */
const LENGTHS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad6777777777777777777777787' +
  '8djde6f56565666577666567655677777fbedskmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllml' +
  'nmnnkmmmnmmnqqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrqu'
const END_OF_STRING = 256
const LONGEST = 30

/** The codes of one length: they follow each other from `first` on. */
interface CodeGroup {
  readonly first: number
  readonly symbols: readonly number[]
}

const GROUPS = codeGroups()

function codeGroups(): CodeGroup[] {
  const lengths = [...LENGTHS].map((digit) => Number.parseInt(digit, 36))
  const groups: CodeGroup[] = []
  let next = 0
  for (let length = 0; length <= LONGEST; length++) {
    const symbols = [...lengths.keys()].filter((symbol) => lengths[symbol] === length)
    groups.push({ first: next, symbols })
    next = (next + symbols.length) * 2
  }
  return groups
}

export function decodeHuffman(bytes: Uint8Array): string {
  let text = ''
  let [code, length] = [0, 0]
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1)
      const symbol = symbolOf(code, ++length)
      if (symbol === undefined) continue
      text += String.fromCharCode(symbol)
      code = 0
      length = 0
    }
  }
  // The last byte is filled with ones.
  if (length > 7 || code !== (1 << length) - 1) throw invalidCode()
  return text
}

/** undefined: no code is so short. */
function symbolOf(code: number, length: number): number | undefined {
  const group = GROUPS[length]
  if (!group) throw invalidCode()
  const symbol = group.symbols[code - group.first]
  if (symbol === END_OF_STRING) throw invalidCode()
  return symbol
}

function invalidCode(): Http2Error {
  return new Http2Error(Code.compressionError, 'A header has an invalid Huffman code')
}
