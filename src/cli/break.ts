import type { HolderView } from '../index.js'
import { onlyName, readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'
import { openLocks } from './store.js'
import { printable } from './table.js'

const OPTIONS = { ...STORE_OPTIONS, fence: { type: 'string' } } as const

/** Revokes the holds of a lock, and prints whose they were. */
export async function breakCommand(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('break', args, OPTIONS)
  const name = onlyName('break', positionals)
  const fence = values.fence === undefined ? undefined : parseFence(values.fence)
  const locks = await openLocks(values)
  try {
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
      const label = holder.label === null ? '' : `, ${holder.label}`
      const who = `${holder.owner} (${holder.host}:${holder.pid}${label})`
      return printable(
        `Broke '${name}': taken from ${who}, fence ${holder.fence}, held since ${holder.since.toISOString()}.`,
      )
    })
    .join('\n')
}
