import type { BeatReply, ClaimReply, ClaimView, Push, Waiting } from '../../contract/store.js'
import { toUs as toWholeUs } from '../shared/time.js'
import { fromToken, type RedisNames } from './names.js'

/**
 * What the scripts answer and publish, in terms of the contract. Durations travel as microseconds.
 */

export function toUs(ms: number): string {
  return String(toWholeUs(ms))
}

export function toMs(us: string | undefined): number {
  return Number(us) / 1000
}

/** A bare fence: granted for the whole lease, and nobody waits. */
export function claimReply(text: string, leaseUs: string): ClaimReply {
  const bareFence = Number(text)
  if (bareFence > 0) return { status: 'granted', fence: bareFence, leaseMs: toMs(leaseUs), isWanted: false }
  const [status, first, second, third, fourth] = text.split(' ')
  switch (status) {
    case 'granted':
      return { status, fence: Number(first), leaseMs: toMs(second), isWanted: third === '1' }
    case 'waiting':
      return waiting(first, second, third, fourth)
    case 'capacity':
      return { status: 'refused', reason: status, capacity: Number(first) }
    case 'busy':
    case 'full':
    case 'gone':
      return { status: 'refused', reason: status }
    default:
      throw new Error(`Redis answered '${text}' to a claim`)
  }
}

export interface Released {
  readonly wasThere: boolean
  /** The claim of the same client that holds now in its place. */
  readonly next: NextHolder | null
}

/** A claim that holds, and its heirs: the claims of the same client right behind it. */
interface NextHolder {
  readonly id: string
  readonly fence: number
  readonly heirs: readonly string[]
}

const RELEASED: Released = { wasThere: true, next: null }

function nextHolder(fence: string | undefined, ids: string): NextHolder {
  const [id = '', ...heirs] = ids.includes('/') ? ids.split('/').map(fromToken) : [fromToken(ids)]
  return { id, fence: Number(fence), heirs }
}

export function releaseReply(text: string): Released {
  if (text === '1') return RELEASED
  const [found, fence, ids] = text.split(' ')
  return { wasThere: found === '1', next: ids === undefined ? null : nextHolder(fence, ids) }
}

export function beatReply(text: string): BeatReply {
  const [status, first, second, third, fourth, newest] = text.split(' ')
  switch (status) {
    case 'held': {
      const isWanted = fourth === '1'
      const held = { status, fence: Number(first), leaseMs: toMs(second), isWanted } as const
      if (newest !== undefined) return { ...held, newest: Number(newest) }
      return third === '-' ? held : { ...held, block: Number(third) }
    }
    case 'waiting':
      return waiting(first, second, third, fourth)
    case 'gone':
      return { status }
    default:
      throw new Error(`Redis answered '${text}' to a beat`)
  }
}

function waiting(left?: string, isNext?: string, freeIn?: string, grantsAbove?: string): Waiting {
  return {
    status: 'waiting',
    presenceMs: toMs(left),
    isNext: isNext === '1',
    freeInMs: freeIn === '-' ? null : toMs(freeIn),
    grantsAbove: Number(grantsAbove),
  }
}

/** A claim that an operator has revoked. */
export function revokedView(text: string): ClaimView {
  const [, id = '', permits, fence, age, left, info = ''] =
    /^(\S+) (\d+) (\d+) (-?\d+) (-?\d+) (.*)$/s.exec(text) ?? []
  return {
    id: fromToken(id),
    permits: Number(permits),
    fence: fence === '0' ? null : Number(fence),
    info,
    ageMs: toMs(age),
    expiresInMs: toMs(left),
  }
}

/**
 * A message that `messageLua` of lua/script.ts has made; null: it is for another space, or unknown.
 */
export function parseMessage(message: string, names: RedisNames): Push | null {
  const match = /^(?:granted (\d+)|(lost|wanted)) (\S+) (.*)$/s.exec(message)
  const resource = names.resourceOf(match?.[4] ?? '')
  if (!match || resource === null) return null
  const [, fence, type, ids = ''] = match
  if (fence !== undefined) return { type: 'granted', resource, ...nextHolder(fence, ids) }
  return { type: type as 'lost' | 'wanted', resource, id: fromToken(ids) }
}
