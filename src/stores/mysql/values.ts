import { hash } from 'node:crypto'
import { toUs } from '../shared/time.js'

// Values as they stand in statements: numbers and hexadecimal only, so that no setting of a server
// or driver affects how they are quoted.

/** Bytes that are hexadecimal already. */
export function bytes(hex: string): string {
  return `X'${hex}'`
}

export function toBytes(text: string): string {
  return bytes(toHex(text))
}

/** JSON of numbers and hexadecimal: nothing in it needs quoting. */
export function json(text: string): string {
  return `'${text}'`
}

export function number(value: number | null): string {
  return value === null ? 'NULL' : String(value)
}

export function micros(ms: number | null): string {
  return ms === null ? 'NULL' : String(toUs(ms))
}

/** The key of a line or state. The length separates the space from the name. */
export function keyOf(space: string, name: string): string {
  return hash('sha256', `${space.length}:${space}${name}`, 'hex').toUpperCase()
}

export function toHex(text: string): string {
  return Buffer.from(text).toString('hex')
}

export function fromHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString()
}
