import { formatMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import type { HolderView, ResourceView, WaiterView } from '../index.js'
import { readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'
import { describeStore, openLocks, type StoreChoice } from './store.js'
import { printableJson, table } from './table.js'

const OPTIONS = {
  ...STORE_OPTIONS,
  'all-spaces': { type: 'boolean' },
  prefix: { type: 'string' },
  json: { type: 'boolean' },
} as const
const HEADINGS = ['RESOURCE', 'STATE', 'FENCE', 'OWNER', 'HOST:PID', 'LABEL', 'SINCE', 'EXPIRES']

/** Prints who holds and who waits. */
export async function ls(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('ls', args, OPTIONS)
  if (positionals.length > 0)
    throw usageError(`ls takes no NAME; to choose by name: --prefix '${positionals[0]}'`, 'ls')
  if (values['all-spaces'] && values.space !== undefined)
    throw usageError('--all-spaces and --space exclude each other', 'ls')
  const found = values['all-spaces'] ? await inAllSpaces(values) : await inSpace(values)
  const text = values.json ? printableJson(found, 2) : asText(found, values)
  process.stdout.write(`${text}\n`)
  return EXIT.ok
}

/** With `--all-spaces`, each resource carries its space. */
type Found = ResourceView & { readonly space?: string }
type Choice = StoreChoice & {
  readonly prefix?: string | undefined
  readonly 'all-spaces'?: boolean | undefined
}

async function inSpace(choice: Choice): Promise<Found[]> {
  const locks = await openLocks(choice)
  const resources: ResourceView[] = []
  try {
    for await (const resource of locks.inspect({ prefix: choice.prefix ?? '' })) resources.push(resource)
  } finally {
    await locks.close()
  }
  return resources
}

async function inAllSpaces(choice: Choice): Promise<Found[]> {
  const locks = await openLocks(choice)
  const spaces = await locks.spaces().finally(() => locks.close())
  const found: Found[] = []
  for (const space of spaces)
    for (const resource of await inSpace({ ...choice, space })) found.push({ space, ...resource })
  return found
}

function asText(resources: readonly Found[], choice: Choice): string {
  const isAll = choice['all-spaces'] === true
  if (resources.length === 0) return nothingFound(choice)
  const rows = resources.flatMap(({ space, name, holders, waiters }) => {
    const first = isAll ? [space ?? '', name] : [name]
    return [
      ...holders.map((holder) => [...first, ...row('holds', holder)]),
      ...waiters.map((waiter) => [...first, ...row('waits', waiter)]),
    ]
  })
  return table(isAll ? ['SPACE', ...HEADINGS] : HEADINGS, rows)
}

/** Names the space and the store: the user may have chosen the wrong one. */
function nothingFound(choice: Choice): string {
  if (choice['all-spaces'])
    return `Nothing is held and nobody waits in any space of ${describeStore(choice)}.`
  const what = choice.prefix === undefined ? '' : ` under the prefix '${choice.prefix}'`
  return `Nothing is held and nobody waits${what} in the space '${choice.space ?? 'default'}' of ${describeStore(choice)}.
To list every space: holdfast ls --all-spaces`
}

function row(state: 'holds' | 'waits', who: HolderView | WaiterView): string[] {
  const nowMs = systemEnv.wallMs()
  const fence = 'fence' in who ? String(who.fence) : '-'
  const since = `${formatMs(Math.max(0, nowMs - who.since.getTime()))} ago`
  const expires = `in ${formatMs(Math.max(0, who.expires.getTime() - nowMs))}`
  return [state, fence, who.owner, `${who.host}:${who.pid}`, who.label ?? '-', since, expires]
}
