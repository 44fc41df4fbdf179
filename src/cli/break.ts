import type { HolderView, WaiterView } from '../index.js'
import { onlyName, readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'
import { openLocks } from './store.js'
import { printable } from './table.js'

const OPTIONS = { ...STORE_OPTIONS, fence: { type: 'string' }, waiter: { type: 'string' } } as const

/** Revokes the holds of a lock, or cancels a waiter, and prints whose they were. */
export async function breakCommand(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('break', args, OPTIONS)
  const name = onlyName('break', positionals)
  const fence = values.fence === undefined ? undefined : parseFence(values.fence)
  if (fence !== undefined && values.waiter !== undefined)
    throw usageError('--fence names a hold and --waiter a waiter: give one of them', 'break')
  const locks = await openLocks(values)
  try {
    if (values.waiter !== undefined) {
      const waiter = await locks.cancelWaiter(name, values.waiter)
      process.stdout.write(`${describeCancel(name, values.waiter, waiter)}\n`)
      return waiter ? EXIT.ok : EXIT.nothingHeld
    }
    const revoked = await locks.breakHold(name, fence === undefined ? {} : { fence })
    process.stdout.write(`${describe(name, fence, revoked)}\n`)
    return revoked.length > 0 ? EXIT.ok : EXIT.nothingHeld
  } finally {
    await locks.close()
  }
}

function parseFence(text: string): number {
  const fence = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(fence))
    throw usageError(`--fence is '${text}', but must be a fence as shown by holdfast ls`, 'break')
  return fence
}

function describe(name: string, fence: number | undefined, revoked: HolderView[]): string {
  if (revoked.length === 0)
    return printable(
      `'${name}' is not held${fence === undefined ? '' : ` with fence ${fence}`}: nothing to break.`,
    )
  return revoked
    .map((holder) => {
      return printable(
        `Broke '${name}': taken from ${whoIs(holder)}, fence ${holder.fence}, held since ${holder.since.toISOString()}.`,
      )
    })
    .join('\n')
}

function describeCancel(name: string, id: string, waiter: WaiterView | null): string {
  if (!waiter) return printable(`No waiter with the id ${id} is in the line of '${name}': nothing to cancel.`)
  const since = waiter.since.toISOString()
  return printable(`Cancelled a waiter of '${name}': ${whoIs(waiter)}, waiting since ${since}.`)
}

function whoIs({ owner, host, pid, label }: WaiterView): string {
  return `${owner} (${host}:${pid}${label === null ? '' : `, ${label}`})`
}
