/**
 * Text as it is stored. PostgreSQL refuses NUL, libsql cuts text at it, and a lone surrogate has no
 * UTF-8 form: these are written as escapes. The code is prefix-free, so a prefix stays a prefix.
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
