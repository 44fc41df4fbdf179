import { invalid } from './errors.js'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/**
 * Milliseconds, or a number with a unit: `'500ms'`, `'1.5s'`, `'5m'`, `'2h'`, `'1d'`. A space
 * between them is allowed: `'30 s'`.
 */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`

const UNITS_MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

interface Limits {
  /** The option's name, for the message. */
  name: string
  minMs?: number
  /** Whether `Infinity` is allowed. */
  infinite?: boolean
}

/** The duration in milliseconds. Throws INVALID_ARGUMENT for anything else. */
export function toMs(value: number | string, limits: Limits): number {
  const ms = typeof value === 'string' ? parse(value) : value
  const minMs = limits.minMs ?? 0
  const isFine =
    typeof ms === 'number' &&
    ms >= minMs &&
    (Number.isFinite(ms) || (limits.infinite === true && ms === Infinity))
  if (isFine) return ms
  const least = minMs > 0 ? ` of at least ${minMs} ms` : ''
  throw invalid(
    `${limits.name} is ${describe(value)}, but must be a duration${least}: milliseconds, or a string such as '500ms', '30s' or '5m'`,
  )
}

function parse(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$/.exec(text)
  if (!match) return Number.NaN
  return Number(match[1]) * UNITS_MS[match[2] as Unit]
}

function describe(value: unknown): string {
  // String() throws for some objects, and says nothing of the others.
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** For people: `1.2 s`, `3 min`. */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${trim(ms / 1000)} s`
  if (ms < 3_600_000) return `${trim(ms / 60_000)} min`
  return `${trim(ms / 3_600_000)} h`
}

function trim(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '')
}
