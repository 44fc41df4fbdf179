import assert from 'node:assert/strict'
import type { Hold } from '../../engine/hold.js'
import type { VirtualProcess } from '../virtual-env.js'

interface Belief {
  readonly process: VirtualProcess
  readonly hold: Hold
}

/** The newest fences of a resource that anybody was given. */
interface Newest {
  all: number
  exclusive: number
}

/** What happened in a simulation, for judging whether enough did. */
export interface Tally {
  grants: number
  /** Grants whose fence follows that of the one before: the hold was passed on inside its process. */
  passes: number
  /** Grants to readers. */
  reads: number
  /** The most readers of one process that were inside together. */
  mostReaders: number
  reentries: number
  losses: number
  refusals: number
  timeouts: number
  unavailable: number
}

/** Sees what every process believes, and fails the simulation when two beliefs exclude each other. */
export class Witness {
  readonly tally: Tally = {
    grants: 0,
    passes: 0,
    reads: 0,
    mostReaders: 0,
    reentries: 0,
    losses: 0,
    refusals: 0,
    timeouts: 0,
    unavailable: 0,
  }
  readonly #beliefs = new Map<string, Set<Belief>>()
  readonly #newest = new Map<string, Newest>()

  /** Somebody is about to ask. The newest fence by now: every hold that comes of it has a greater one. */
  asks(resource: string): number {
    return this.#newestOf(resource).all
  }

  /** A process was given a hold, which excludes what others may believe at this moment. */
  granted(process: VirtualProcess, hold: Hold, newestWhenAsked: number): void {
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

  /** Readers of two processes may learn of their grants in another order than they were granted; but who asks later is granted later. */
  #compare(process: VirtualProcess, { resource, fence, isExclusive }: Hold, newestWhenAsked: number): void {
    const newest = this.#newestOf(resource)
    const least = isExclusive ? newest.all : Math.max(newest.exclusive, newestWhenAsked)
    assert.ok(fence > least, `${resource}: fence ${fence} of ${process.name} came after ${least}`)
    if (fence === newest.all + 1) this.tally.passes++
    newest.all = Math.max(newest.all, fence)
    if (isExclusive) newest.exclusive = fence
  }

  #newestOf(resource: string): Newest {
    const newest = this.#newest.get(resource) ?? { all: 0, exclusive: 0 }
    this.#newest.set(resource, newest)
    return newest
  }

  /** No two that live believe to have what excludes the other, not even one whose process is paused right now. */
  check(): void {
    for (const [resource, beliefs] of this.#beliefs) {
      for (const belief of beliefs) if (isOver(belief)) beliefs.delete(belief)
      const isShared = ![...beliefs].some(({ hold }) => hold.isExclusive)
      const names = [...beliefs].map(
        ({ process, hold }) => `${process.name} (fence ${hold.fence}, ${hold.remainingMs} ms left)`,
      )
      assert.ok(isShared || beliefs.size <= 1, `${resource} is believed to be held by ${names.join(' and ')}`)
    }
  }
}

function isOver({ process, hold }: Belief): boolean {
  return process.state === 'killed' || !hold.isValid
}
