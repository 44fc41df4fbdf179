import type { Party, ResourceDetail } from '../shapes.js'
import { counted } from './format.js'
import { shortened, visible } from './visible.js'

/** `host-3 (process 71, checkout)`: how a dialog speaks of a holder or waiter. */
export function nameOf({ host, pid, label, owner }: Party): string {
  const where = host === '' ? owner : host
  const more = [pid > 0 ? `process ${pid}` : '', label ?? ''].filter((part) => part !== '')
  const whole = more.length > 0 ? `${where} (${more.join(', ')})` : where
  return visible(shortened(whole, 120))
}

/** What follows when this hold is broken: a sentence for each fact. */
export function ofBreaking(resource: ResourceDetail, holder: Party): string[] {
  const { holders, waitersTotal, kind } = resource
  const others = holders.length - 1
  const what = kind === 'semaphore' ? counted(holder.permits, 'permit') : wordOf(resource)
  const facts = [`${nameOf(holder)} loses the ${what} at once. Its signal aborts.`]
  if (others > 0) facts.push(`${counted(others, 'other holder keeps its own', 'other holders keep theirs')}.`)
  facts.push(next(waitersTotal, others > 0 || kind === 'semaphore'))
  facts.push('Work that ignores the signal goes on without the lock, unless the resource checks the fence.')
  return facts
}

/** What follows when this waiter is cancelled. `position` counts from 1. */
export function ofCancelling(resource: ResourceDetail, waiter: Party, position: number): string[] {
  const behind = resource.waitersTotal - position
  return [
    `The request of ${nameOf(waiter)} fails with CANCELLED. It does not ask again by itself.`,
    behind > 0
      ? `${counted(behind, 'waiter behind it moves', 'waiters behind it move')} up by one.`
      : 'Nobody waits behind it.',
    'No holder is affected.',
  ]
}

/** What follows when the semaphore gets another capacity. */
export function ofResizing(resource: ResourceDetail, capacity: number): string[] {
  const { capacity: now, used, waitersTotal } = resource
  if (now === null) return []
  if (!Number.isSafeInteger(capacity) || capacity < 1) return ['Give a whole number from 1 on.']
  if (capacity === now) return [`It has ${counted(now, 'permit')} already.`]
  const remembered = 'It holds for every client, also for those that declare another number.'
  if (capacity > now) {
    const free = counted(capacity - Math.min(used, capacity), 'permit')
    const gets =
      waitersTotal > 0
        ? `${free} can go to the ${counted(waitersTotal, 'waiter')} at once, in order.`
        : `${free} will be free.`
    return [`From ${now} to ${counted(capacity, 'permit')}. ${gets}`, remembered]
  }
  const over = used - capacity
  return [
    `From ${now} to ${counted(capacity, 'permit')}. Nobody is interrupted.`,
    over > 0
      ? `${counted(over, 'permit')} too many stay in use until their holders leave. Nobody is granted before.`
      : `${counted(capacity - used, 'permit')} will be free.`,
    `A waiter that asks for more than ${capacity} fails with CAPACITY_MISMATCH.`,
    remembered,
  ]
}

function wordOf({ kind }: ResourceDetail): string {
  if (kind === 'election') return 'leadership'
  return kind === 'once' ? 'run' : kind === 'barrier' ? 'place at the barrier' : 'lock'
}

function next(waiters: number, mayStayClosed: boolean): string {
  if (waiters === 0) return 'Nobody waits for it.'
  const first = waiters === 1 ? 'The one waiter' : `The next of ${counted(waiters, 'waiter')}`
  return mayStayClosed ? `${first} gets it as soon as it fits.` : `${first} gets it.`
}
