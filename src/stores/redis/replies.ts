import type { BeatReply, ClaimReply, ClaimView, Waiting } from '../../contract/store.js'
import { toUs as toWholeUs } from '../shared/time.js'
import { fromToken } from './names.js'

/** The words of the scripts, as the contract has them. Durations travel as microseconds. */

export function toUs(ms: number): string {
  return String(toWholeUs(ms))
}

export function toMs(us: string | undefined): number {
  return Number(us) / 1000
}

export function claimReply(text: string): ClaimReply {
  const [status, first, second, third, fourth] = text.split(' ')
  switch (status) {
    case 'granted':
      return { status, fence: Number(first), leaseMs: toMs(second), isWanted: third === '1' }
    case 'waiting':
      return waiting(first, second, third, fourth)
    case 'capacity':
      return { status: 'refused', reason: status, capacity: Number(first) }
    case 'busy':
    case 'gone':
      return { status: 'refused', reason: status }
    default:
      throw new Error(`Redis answered '${text}' to a claim`)
  }
}

export interface Released {
  readonly wasThere: boolean
  /** The claim of the same client that holds now in its place. */
  readonly next: Granted | null
}

/** A claim that holds, and those of the same client who come right behind it. */
export interface Granted {
  readonly id: string
  readonly fence: number
  readonly heirs: readonly string[]
}

export function granted(fence: string | undefined, ids: string): Granted {
  const [id = '', ...heirs] = ids.includes('/') ? ids.split('/').map(fromToken) : [fromToken(ids)]
  return { id, fence: Number(fence), heirs }
}

export function releaseReply(text: string): Released {
  const [found, fence, ids] = text.split(' ')
  return { wasThere: found === '1', next: ids === undefined ? null : granted(fence, ids) }
}

export function beatReply(text: string): BeatReply {
  const [status, first, second, third, fourth] = text.split(' ')
  switch (status) {
    case 'held': {
      const isWanted = fourth === '1'
      const held = { status, fence: Number(first), leaseMs: toMs(second), isWanted } as const
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

/** One of those whom an operator has robbed. */
export function robbedView(text: string): ClaimView {
  const [, id = '', permits, fence, age, left, info = ''] =
    /^(\S+) (\d+) (\d+) (-?\d+) (-?\d+) (.*)$/s.exec(text) ?? []
  return {
    id: fromToken(id),
    permits: Number(permits),
    fence: Number(fence),
    info,
    ageMs: toMs(age),
    expiresInMs: toMs(left),
  }
}
