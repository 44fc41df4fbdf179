import { formatMs } from '../base/duration.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { HolderView, ResourceView } from '../index.js'
import { clip } from './width.js'

/** No cell is wider: a name may have thousands of characters. */
const WIDEST = 48

export const HEADINGS = ['RESOURCE', 'HELD', 'WAIT', 'LONGEST WAIT', 'HELD FOR', 'HOLDER', 'LABEL']

/** What `holdfast top` shows of a space at one moment. */
export interface Summary {
  readonly held: number
  readonly waiting: number
  readonly longestWaitMs: number | null
}

export function summaryOf(resources: readonly ResourceView[], nowMs: number): Summary {
  const waits = resources.map((resource) => longestWaitMs(resource, nowMs)).filter((wait) => wait !== null)
  return {
    held: resources.filter(({ holders }) => holders.length > 0).length,
    waiting: resources.reduce((sum, { waiters }) => sum + waiters.length, 0),
    longestWaitMs: waits.length === 0 ? null : waits.reduce((most, wait) => Math.max(most, wait), 0),
  }
}

/** The most contended first: by waiters, then by the longest wait, then by name. */
export function byContention(resources: readonly ResourceView[], nowMs: number): ResourceView[] {
  return resources.toSorted(
    (a, b) =>
      b.waiters.length - a.waiters.length ||
      (longestWaitMs(b, nowMs) ?? 0) - (longestWaitMs(a, nowMs) ?? 0) ||
      (a.name < b.name ? -1 : 1),
  )
}

/** A resource in one row. */
export function rowOf(resource: ResourceView, nowMs: number): string[] {
  const { name, holders, waiters } = resource
  const [first, ...others] = holders
  const waitMs = longestWaitMs(resource, nowMs)
  const also = others.length === 0 ? '' : ` +${others.length}`
  return [
    name,
    heldText(resource),
    String(waiters.length),
    waitMs === null ? '-' : formatMs(waitMs),
    first ? formatMs(ageMs(first, nowMs)) : '-',
    first ? `${first.host}:${first.pid}${also}` : '-',
    first?.label ?? '-',
  ].map((cell) => clip(cell, WIDEST))
}

/** `yes` for a mutex or writer, the number of readers, or the permits of a semaphore. */
function heldText({ kind, capacity, holders }: ResourceView): string {
  if (kind === 'semaphore') return `${holders.reduce((sum, { permits }) => sum + permits, 0)}/${capacity}`
  if (holders.length === 0) return 'no'
  const isRead = holders.every(({ permits }) => permits < EXCLUSIVE)
  return isRead ? `${holders.length} read` : 'yes'
}

function longestWaitMs({ waiters }: ResourceView, nowMs: number): number | null {
  if (waiters.length === 0) return null
  return waiters.reduce((most, waiter) => Math.max(most, ageMs(waiter, nowMs)), 0)
}

function ageMs({ since }: Pick<HolderView, 'since'>, nowMs: number): number {
  return Math.max(0, nowMs - since.getTime())
}
