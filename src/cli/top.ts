import { formatMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import type { Holdfast, ResourceView } from '../index.js'
import { readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { describeFailure, usageError } from './failures.js'
import { Live, parseInterval } from './live.js'
import { byContention, HEADINGS, rowOf, summaryOf } from './resources.js'
import { Screen, type ScreenLine } from './screen.js'
import { describeStore, openLocks, type StoreChoice } from './store.js'
import { printable, printableJson, table, tableLines } from './table.js'

const OPTIONS = {
  ...STORE_OPTIONS,
  prefix: { type: 'string' },
  interval: { type: 'string' },
  json: { type: 'boolean' },
} as const
const DEFAULT_INTERVAL_MS = 2000
/** What is above the rows: two lines about the whole, and the headings. */
const HEAD_LINES = 3

/** Shows the resources of a space live, the most contended first. */
export async function top(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('top', args, OPTIONS)
  if (positionals.length > 0)
    throw usageError(`top takes no NAME; to choose by name: --prefix '${positionals[0]}'`, 'top')
  const intervalMs = parseInterval(values.interval, 'top', DEFAULT_INTERVAL_MS)
  const locks = await openLocks(values)
  const look = (): Promise<ResourceView[]> => listed(locks, values.prefix ?? '')
  try {
    if (values.json) return await printEach(look, intervalMs)
    if (!process.stdout.isTTY) return print(await look())
    return await new TopScreen(look, intervalMs, values).run()
  } finally {
    await locks.close()
  }
}

async function listed(locks: Holdfast, prefix: string): Promise<ResourceView[]> {
  const resources: ResourceView[] = []
  for await (const resource of locks.inspect({ prefix })) resources.push(resource)
  return byContention(resources, systemEnv.wallMs())
}

/** One table: the output is read by a program, or kept in a file. */
function print(resources: readonly ResourceView[]): number {
  const nowMs = systemEnv.wallMs()
  const rows = resources.map((resource) => rowOf(resource, nowMs))
  process.stdout.write(`${table(HEADINGS, rows)}\n`)
  return EXIT.ok
}

/** One document on one line, every interval. */
function printEach(look: () => Promise<ResourceView[]>, intervalMs: number): Promise<number> {
  const live = new Live()
  return live.run(async () => {
    const looked = await live.look(look)
    if (looked) printDocument(looked.seen)
    return intervalMs
  })
}

function printDocument(resources: readonly ResourceView[]): void {
  const nowMs = systemEnv.wallMs()
  const document = { asOf: new Date(nowMs), ...summaryOf(resources, nowMs), resources }
  process.stdout.write(`${printableJson(document)}\n`)
}

/** The live view in a terminal. */
class TopScreen {
  readonly #look: () => Promise<ResourceView[]>
  readonly #intervalMs: number
  readonly #choice: StoreChoice
  readonly #live = new Live()
  readonly #screen = new Screen({ onKey: (key) => this.#onKey(key), onResize: () => this.#draw() })
  #resources: readonly ResourceView[] | null = null
  /** Why the last look failed. */
  #trouble: string | null = null
  /** The first row that is shown. */
  #offset = 0

  constructor(look: () => Promise<ResourceView[]>, intervalMs: number, choice: StoreChoice) {
    this.#look = look
    this.#intervalMs = intervalMs
    this.#choice = choice
  }

  async run(): Promise<number> {
    this.#screen.open()
    try {
      this.#draw()
      return await this.#live.run(() => this.#round())
    } finally {
      this.#screen.close()
    }
  }

  async #round(): Promise<number> {
    try {
      this.#resources = await this.#look()
      this.#trouble = null
    } catch (error) {
      // What was seen last stays: the store may be back in a moment.
      this.#trouble = describeFailure(error)
    }
    if (!this.#live.isOver) this.#draw()
    return this.#intervalMs
  }

  /** How many rows fit on the screen. */
  get #page(): number {
    return Math.max(1, this.#screen.rows - HEAD_LINES)
  }

  #onKey(key: string): void {
    const page = this.#page
    const steps: Readonly<Record<string, number>> = {
      j: 1,
      k: -1,
      '\u001b[B': 1,
      '\u001b[A': -1,
      ' ': page,
      '\u001b[6~': page,
      '\u001b[5~': -page,
      g: -Infinity,
      '\u001b[H': -Infinity,
    }
    if (key === 'q' || key === 'Q' || key === '\u0003') return this.#live.end()
    this.#offset += steps[key] ?? 0
    this.#draw()
  }

  #draw(): void {
    this.#screen.draw(this.#lines())
  }

  #lines(): ScreenLine[] {
    const nowMs = systemEnv.wallMs()
    const where = `${this.#choice.space ?? 'default'} of ${describeStore(this.#choice)}`
    const title = { text: printable(`holdfast top: ${where}`) }
    if (!this.#resources) return [title, { text: printable(this.#trouble ?? 'Asking the store …') }]
    const { held, waiting, longestWaitMs } = summaryOf(this.#resources, nowMs)
    const longest = longestWaitMs === null ? '' : `, longest wait ${formatMs(longestWaitMs)}`
    const state = `${held} held, ${waiting} waiting${longest}. Keys: q quit, j/k or arrows scroll`
    const status = { text: printable(this.#trouble ?? state) }
    // The list may have become shorter, and the window larger.
    const last = Math.max(0, this.#resources.length - this.#page)
    this.#offset = Math.min(last, Math.max(0, this.#offset))
    const shown = this.#resources.slice(this.#offset, this.#offset + this.#screen.rows)
    const rows = shown.map((resource) => rowOf(resource, nowMs))
    const [headings = '', ...lines] = tableLines(HEADINGS, rows)
    if (this.#resources.length === 0) return [title, status, { text: 'Nothing is held and nobody waits.' }]
    return [title, status, { text: headings, isHeading: true }, ...lines.map((text) => ({ text }))]
  }
}
