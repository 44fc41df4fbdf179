import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import type { VirtualProcess } from '../virtual-env.js'

/** A hold that a process was given, and may still take for valid. */
interface Belief {
  readonly process: VirtualProcess
  readonly hold: Hold
}

/** The fences of a resource that were given out. */
interface Fences {
  newest: number
  newestExclusive: number
  readonly all: Set<number>
}

/** What happened in a simulation, to judge whether enough did. */
export interface Tally {
  grants: number
  /**
   * Grants whose fence follows that of the one before: the hold was passed on inside its process.
   */
  passes: number
  /** Grants to readers. */
  reads: number
  /** The most readers of one process that held together. */
  mostReaders: number
  reentries: number
  downgrades: number
  /** Uses of locks whose leases linger. */
  lingering: number
  losses: number
  refusals: number
  timeouts: number
  unavailable: number
}

/**
 * Sees what every process believes, and fails the simulation when two beliefs exclude each other.
 */
export class Witness {
  readonly tally: Tally = {
    grants: 0,
    passes: 0,
    reads: 0,
    mostReaders: 0,
    reentries: 0,
    downgrades: 0,
    lingering: 0,
    losses: 0,
    refusals: 0,
    timeouts: 0,
    unavailable: 0,
  }
  readonly #beliefs = new Map<string, Set<Belief>>()
  readonly #fences = new Map<string, Fences>()
  #violation: unknown

  /** The newest fence by now. A request that begins now must get a greater one. */
  newestFence(resource: string): number {
    return this.#fencesOf(resource).newest
  }

  /** A process was given a hold, which excludes what others may believe at this moment. */
  granted(process: VirtualProcess, hold: Hold, newestWhenAsked: number): void {
    try {
      this.#judge(process, hold, newestWhenAsked)
    } catch (error) {
      // Thrown into a task, it would surface only when all tasks are over.
      this.#violation ??= error
      throw error
    }
  }

  #judge(process: VirtualProcess, hold: Hold, newestWhenAsked: number): void {
    this.tally.grants++
    assert.ok(hold.isValid, `${process.name} was given a hold of ${hold.resource} that was over already`)
    this.#compare(process, hold, newestWhenAsked)
    const beliefs = this.#beliefs.get(hold.resource) ?? new Set()
    this.#beliefs.set(hold.resource, beliefs.add({ process, hold }))
    this.check()
    if (hold.isExclusive) return
    this.tally.reads++
    const together = [...beliefs].filter((belief) => belief.process === process).length
    this.tally.mostReaders = Math.max(this.tally.mostReaders, together)
  }

  /**
   * Readers of two processes may learn of their grants in another order than the store granted
   * them. But a reader that asks later is granted later, and no two holds ever have one fence.
   */
  #compare(process: VirtualProcess, { resource, fence, isExclusive }: Hold, newestWhenAsked: number): void {
    const fences = this.#fencesOf(resource)
    const least = isExclusive ? fences.newest : Math.max(fences.newestExclusive, newestWhenAsked)
    assert.ok(fence > least, `${resource}: fence ${fence} of ${process.name} came after ${least}`)
    assert.ok(!fences.all.has(fence), `${resource}: fence ${fence} of ${process.name} was given out twice`)
    fences.all.add(fence)
    if (fence === fences.newest + 1) this.tally.passes++
    fences.newest = Math.max(fences.newest, fence)
    if (isExclusive) fences.newestExclusive = fence
  }

  #fencesOf(resource: string): Fences {
    const fences = this.#fences.get(resource) ?? { newest: 0, newestExclusive: 0, all: new Set() }
    this.#fences.set(resource, fences)
    return fences
  }

  /**
   * No two living processes believe in holds that exclude each other, even if one is paused right
   * now.
   */
  check(): void {
    if (this.#violation) throw this.#violation
    for (const [resource, beliefs] of this.#beliefs) {
      let hasExclusive = false
      for (const belief of beliefs) {
        if (isOver(belief)) beliefs.delete(belief)
        else hasExclusive ||= belief.hold.isExclusive
      }
      if (hasExclusive && beliefs.size > 1)
        assert.fail(`${resource} is believed to be held by ${[...beliefs].map(describe).join(' and ')}`)
    }
  }
}

function isOver({ process, hold }: Belief): boolean {
  return process.state === 'killed' || !hold.isValid
}

function describe({ process, hold }: Belief): string {
  return `${process.name} (fence ${hold.fence}, ${hold.remainingMs} ms left)`
}
