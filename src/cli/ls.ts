import { formatMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import type { HolderView, ResourceView, WaiterView } from '../index.js'
import { readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'
import { openLocks } from './store.js'
import { table } from './table.js'

const OPTIONS = { ...STORE_OPTIONS, prefix: { type: 'string' }, json: { type: 'boolean' } } as const
const HEADINGS = ['RESOURCE', 'STATE', 'FENCE', 'OWNER', 'HOST:PID', 'LABEL', 'SINCE', 'EXPIRES']

/** Prints who holds and who waits. */
export async function ls(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('ls', args, OPTIONS)
  if (positionals.length > 0)
    throw usageError(`ls takes no NAME; to choose by name: --prefix '${positionals[0]}'`, 'ls')
  const locks = await openLocks(values)
  const resources: ResourceView[] = []
  try {
    for await (const resource of locks.inspect(values.prefix === undefined ? {} : { prefix: values.prefix }))
      resources.push(resource)
  } finally {
    await locks.close()
  }
  process.stdout.write(`${values.json ? JSON.stringify(resources, null, 2) : asText(resources)}\n`)
  return EXIT.ok
}

function asText(resources: ResourceView[]): string {
  if (resources.length === 0) return 'Nothing is held and nobody waits.'
  const rows = resources.flatMap((resource) => [
    ...resource.holders.map((holder) => row(resource.name, 'holds', holder)),
    ...resource.waiters.map((waiter) => row(resource.name, 'waits', waiter)),
  ])
  return table(HEADINGS, rows)
}

function row(name: string, state: 'holds' | 'waits', who: HolderView | WaiterView): string[] {
  const nowMs = systemEnv.wallMs()
  const fence = 'fence' in who ? String(who.fence) : '-'
  const since = `${formatMs(Math.max(0, nowMs - who.since.getTime()))} ago`
  const expires = `in ${formatMs(Math.max(0, who.expires.getTime() - nowMs))}`
  return [name, state, fence, who.owner, `${who.host}:${who.pid}`, who.label ?? '-', since, expires]
}
