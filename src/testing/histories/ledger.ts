import assert from 'node:assert/strict'
import { FLOOR_SKEW_MS } from '../../contract/constants.js'
import type { Held } from '../../contract/store.js'
import type { Given } from '../model.js'

/**
 * Fields whose values are numbers of the store's choice; the model has places in the order of
 * giving there.
 */
const NUMBER_FIELDS = new Set(['fence', 'block', 'version'])

/**
 * Which number the store gave for each of the model's. The store may choose, within what the
 * contract promises: fences grow, blocks do not overlap, a floor is respected, and no version of a
 * key comes twice.
 */
export class Ledger {
  readonly #scope: 'store' | 'resource' | 'group'
  readonly #real = new Map<number, number>()
  readonly #highest = new Map<string, number>()
  readonly #versions = new Set<string>()
  /** By resource, its newest hold's fence. */
  readonly #newestHold = new Map<string, number>()
  /** The same as it was before the last call. */
  #newestBefore = new Map<string, number>()
  /** By resource and claim, what a grant of that claim must be above. */
  readonly #grantsAbove = new Map<string, number>()
  #fresh: number[] = []

  /** Whether fences grow in the whole store, or only per resource. */
  constructor(scope: 'store' | 'resource' | 'group') {
    this.#scope = scope
  }

  /** The store's number for one of the model's; undefined if nobody has seen it. */
  real(number: number): number | undefined {
    return this.#real.get(number)
  }

  /** The highest fence that was given for the resource. */
  highest(resource: string): number {
    return this.#highest.get(this.#scopeOf(resource)) ?? 0
  }

  /** The highest fence that was given for any resource. */
  get highestOfAll(): number {
    return Math.max(0, ...this.#highest.values())
  }

  /** Learns from two values of the same shape, what the model expects and what the store gave. */
  learn(expected: unknown, actual: unknown): void {
    if (!isObject(expected) || !isObject(actual)) return
    for (const [key, mine] of Object.entries(expected)) {
      const theirs = actual[key]
      if (!NUMBER_FIELDS.has(key) || typeof mine !== 'number') this.learn(mine, theirs)
      else if (typeof theirs === 'number' && !this.#real.has(mine)) {
        this.#real.set(mine, theirs)
        this.#fresh.push(mine)
      }
    }
  }

  /** The value with the model's numbers replaced by the store's. */
  translate(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.translate(each))
    if (!isObject(value)) return value
    const fields = Object.entries(value).map(([key, field]) => {
      const isNumber = NUMBER_FIELDS.has(key) && typeof field === 'number'
      return [
        key,
        isNumber ? (this.#real.get(field) ?? `number ${field} that nobody saw`) : this.translate(field),
      ]
    })
    return Object.fromEntries(fields)
  }

  /**
   * Takes a store at its word: while this claim waits, no fence of the resource is above that
   * number; its own will be. Where each client reads the line itself (`group`), another claim
   * that the same call let in may take its fence after that read.
   */
  promise(resource: string, id: string, grantsAbove: number): void {
    const known = this.#scope === 'group' ? this.#newestBefore : this.#newestHold
    const newest = known.get(resource) ?? 0
    assert(
      grantsAbove >= newest,
      `${id} waits and is to be granted above ${grantsAbove}, but ${resource} is at ${newest}`,
    )
    this.#grantsAbove.set(`${resource} ${id}`, grantsAbove)
  }

  /** Checks the answer to a beat that named fences. */
  checkNamed(resource: string, first: number, { fence, newest }: Held): void {
    if (newest === undefined) assert(fence === first, `the fence ${first} was named, but it is ${fence}`)
    else assert(newest >= (this.#newestHold.get(resource) ?? 0), `the newest of ${resource} is not ${newest}`)
  }

  /**
   * Fences up to that one are kept for others: nobody gets them, or one before them, from the store
   * any more.
   */
  keep(resource: string, last: number): void {
    this.#highest.set(this.#scopeOf(resource), Math.max(this.highest(resource), last))
  }

  /** Checks the numbers learned since the last check. */
  check(given: readonly Given[], wallMs: number): void {
    const fresh = this.#fresh.sort((a, b) => a - b).map((number) => this.#entry(number, given))
    this.#fresh = []
    this.#newestBefore = new Map(this.#newestHold)
    for (const { kind, name, first } of fresh.filter((entry) => entry.kind === 'version')) {
      assert(!this.#versions.has(`${name} ${first}`), `a ${kind} of ${name} came twice: ${first}`)
      this.#versions.add(`${name} ${first}`)
    }
    this.#checkFences(
      fresh.filter((entry) => entry.kind !== 'version'),
      wallMs,
    )
  }

  #checkFences(fresh: readonly Entry[], wallMs: number): void {
    const before = new Map(this.#highest)
    for (const { kind, name, id, first, last, floor } of fresh) {
      const scope = this.#scopeOf(name)
      const above = before.get(scope) ?? 0
      assert(Number.isSafeInteger(last), `a fence must be a safe integer: ${last}`)
      // The claim names it, and an exclusive one may have numbers that only others are beyond.
      if (kind !== 'named')
        assert(first > above, `a ${kind} of ${name} got ${first}, though ${above} had been given before`)
      const believed = Math.min(floor + 1, (wallMs + FLOOR_SKEW_MS) * 1000)
      assert(first >= believed, `a ${kind} of ${name} got ${first}, though its claimant had seen ${floor}`)
      this.#highest.set(scope, Math.max(this.highest(name), last))
      if (kind === 'hold' || kind === 'named') this.#checkHold(name, id, first)
    }
    for (const [index, entry] of fresh.entries())
      for (const later of fresh.slice(index + 1)) this.#checkPair(entry, later)
  }

  #checkHold(resource: string, id: string | null, fence: number): void {
    const above = this.#grantsAbove.get(`${resource} ${id}`) ?? 0
    assert(fence > above, `${id} was to be granted above ${above}, but got ${fence}`)
    this.#newestHold.set(resource, Math.max(this.#newestHold.get(resource) ?? 0, fence))
  }

  /**
   * Two that were given in the same call: holds in the order of granting, blocks anyhow but apart.
   */
  #checkPair(a: Entry, b: Entry): void {
    if (this.#scopeOf(a.name) !== this.#scopeOf(b.name)) return
    if (a.name !== b.name && (a.kind === 'named' || b.kind === 'named')) return
    const story = `${a.kind} ${a.first}..${a.last} and ${b.kind} ${b.first}..${b.last} of ${b.name}`
    assert(a.last < b.first || b.last < a.first, `fences overlap: ${story}`)
    if (this.#scope !== 'group' && a.kind === 'hold' && b.kind === 'hold' && a.name === b.name)
      assert(a.first < b.first, `fences do not follow the order of granting: ${story}`)
  }

  #entry(number: number, given: readonly Given[]): Entry {
    const what = given[number - 1]
    const first = this.#real.get(number)
    assert(what && first !== undefined)
    return { ...what, first, last: first + what.size - 1 }
  }

  #scopeOf(resource: string): string {
    return this.#scope === 'store' ? '' : resource
  }
}

interface Entry extends Given {
  readonly first: number
  readonly last: number
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
