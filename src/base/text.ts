/**
 * Text in the form in which it is stored. PostgreSQL takes no NUL, libsql cuts text there when it reads it back, and half of a surrogate pair has no
 * UTF-8 form; both are written as escapes. Each character has its own code and no code begins another, so a prefix stays one.
 */
export function encodeText(text: string): string {
  if (!text.includes('\\') && !text.includes('\0') && text.isWellFormed()) return text
  return text.replace(/[\\\0]|\p{Surrogate}/gu, (char) => {
    if (char === '\\') return '\\\\'
    return char === '\0' ? '\\0' : `\\u${char.charCodeAt(0).toString(16)}`
  })
}

export function decodeText(stored: string): string {
  if (!stored.includes('\\')) return stored
  return stored.replace(/\\(\\|0|u[0-9a-f]{4})/g, (_, code: string) => {
    if (code === '\\') return '\\'
    return code === '0' ? '\0' : String.fromCharCode(Number.parseInt(code.slice(1), 16))
  })
}
