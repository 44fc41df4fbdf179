import { formatMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import type { Holdfast, ResourceView } from '../index.js'
import { onlyName, readArguments, STORE_OPTIONS } from './arguments.js'
import { eventsBetween, type LineEvent } from './line-events.js'
import { Live } from './live.js'
import { openLocks } from './store.js'
import { printable, printableJson } from './table.js'

const OPTIONS = { ...STORE_OPTIONS, json: { type: 'boolean' } } as const

/** How often the line is looked at: often while it changes, seldom while it rests. */
const FASTEST_MS = 100
const SLOWEST_MS = 1000
/** After a rest of that many times the interval, the interval grows. */
const REST_SHARE = 4
/** A look that takes long is not repeated at once, but soon enough when the store is back. */
const LOOK_SHARE = 5
const LONGEST_PAUSE_MS = 5000

/** Prints what happens in the line of one resource, until it is ended. */
export async function watch(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('watch', args, OPTIONS)
  const name = onlyName('watch', positionals)
  const locks = await openLocks(values)
  const print = values.json === true ? printJson : printText
  try {
    return await new Watch(locks, name, print).run()
  } finally {
    await locks.close()
  }
}

type Printer = (event: LineEvent, name: string, at: Date) => void

class Watch {
  readonly #locks: Holdfast
  readonly #name: string
  readonly #print: Printer
  readonly #live = new Live()
  #seen: ResourceView | null | undefined
  #changedAt = systemEnv.now()

  constructor(locks: Holdfast, name: string, print: Printer) {
    this.#locks = locks
    this.#name = name
    this.#print = print
  }

  run(): Promise<number> {
    return this.#live.run(() => this.#round())
  }

  async #round(): Promise<number> {
    const startedAt = systemEnv.now()
    const looked = await this.#live.look(() => this.#look())
    if (looked) this.#compare(looked.seen)
    const now = systemEnv.now()
    const restMs = Math.min(SLOWEST_MS, Math.max(FASTEST_MS, (now - this.#changedAt) / REST_SHARE))
    return Math.max(restMs, Math.min(LONGEST_PAUSE_MS, (now - startedAt) * LOOK_SHARE))
  }

  async #look(): Promise<ResourceView | null> {
    for await (const resource of this.#locks.inspect({ name: this.#name })) return resource
    return null
  }

  #compare(line: ResourceView | null): void {
    const at = new Date(systemEnv.wallMs())
    const events = eventsBetween(this.#seen, line, at.getTime())
    this.#seen = line
    if (events.length > 0) this.#changedAt = systemEnv.now()
    for (const event of events) this.#print(event, this.#name, at)
  }
}

function printJson({ type, claim, afterMs, capacity }: LineEvent, name: string, at: Date): void {
  const about = capacity === undefined ? { afterMs, ...claim } : { capacity }
  process.stdout.write(`${printableJson({ at, event: type, name, ...about })}\n`)
}

function printText({ type, claim, afterMs, capacity }: LineEvent, _name: string, at: Date): void {
  const parts = [`${at.toISOString()}  ${type.padEnd(8)}`]
  if (capacity !== undefined) parts.push(`to ${capacity} permits`)
  if (claim) {
    parts.push(`${claim.host}:${claim.pid}`)
    if (claim.label !== null) parts.push(claim.label)
    if ('fence' in claim) parts.push(`fence ${claim.fence}`)
    if (afterMs !== null) parts.push(`after ${formatMs(afterMs)}`)
    parts.push(`id ${claim.id}`)
  }
  process.stdout.write(`${printable(parts.join('  '))}\n`)
}
