import assert from 'node:assert/strict'
import type { Hold } from '../../engine/hold.js'
import type { VirtualProcess } from '../virtual-env.js'

interface Belief {
  readonly process: VirtualProcess
  readonly hold: Hold
}

/** What happened in a simulation, for judging whether enough did. */
export interface Tally {
  grants: number
  /** Grants whose fence follows that of the one before: the hold was passed on inside its process. */
  passes: number
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
    reentries: 0,
    losses: 0,
    refusals: 0,
    timeouts: 0,
    unavailable: 0,
  }
  readonly #beliefs = new Map<string, Set<Belief>>()
  readonly #newestFence = new Map<string, number>()

  /** A process was given a hold, which nobody else may believe to have at this moment. */
  granted(process: VirtualProcess, hold: Hold): void {
    this.tally.grants++
    assert.ok(hold.isValid, `${process.name} was given a hold of ${hold.resource} that was over already`)
    const newest = this.#newestFence.get(hold.resource) ?? 0
    assert.ok(
      hold.fence > newest,
      `${hold.resource}: fence ${hold.fence} of ${process.name} came after ${newest}`,
    )
    if (hold.fence === newest + 1) this.tally.passes++
    this.#newestFence.set(hold.resource, hold.fence)
    const beliefs = this.#beliefs.get(hold.resource) ?? new Set()
    this.#beliefs.set(hold.resource, beliefs.add({ process, hold }))
    this.check()
  }

  /** No two processes that live believe to hold the same mutex, not even one that is paused right now. */
  check(): void {
    for (const [resource, beliefs] of this.#beliefs) {
      for (const belief of beliefs) if (isOver(belief)) beliefs.delete(belief)
      const names = [...beliefs].map(
        ({ process, hold }) => `${process.name} (fence ${hold.fence}, ${hold.remainingMs} ms left)`,
      )
      assert.ok(beliefs.size <= 1, `${resource} is believed to be held by ${names.join(' and ')}`)
    }
  }
}

function isOver({ process, hold }: Belief): boolean {
  return process.state === 'killed' || !hold.isValid
}
