import type { Baton } from './baton.js'
import type { Claim } from './claim.js'
import { Cohort, type Member } from './cohort.js'

/**
 * Readers of one process. They need not follow each other: while one of them has a grant, the others come in beside it. Each
 * with a fence that the store gave out after this one had asked: a reader of another process may have been granted since the claim was,
 * and the fence of a later hold is greater than that of every earlier one.
 */
export class Readers extends Cohort {
  /** How many had arrived when fences were asked for last. Who came later has to wait for the next answer. */
  #asked = 0
  /** How many had arrived when the grant came that they share now. */
  #invited = 0
  #baton: Baton | null = null

  override enter(member: Member): void {
    super.enter(member)
    if (this.front !== member) this.#goOn()
  }

  override fencesFor(claim: Claim): number {
    // One that has served its turn may still be held, and renewed.
    if (this.front?.claim !== claim) return 0
    // While it waits in line, its fences come with the grant, for those who were here when it was sent.
    if (claim.phase === 'waiting' && !claim.needsFences) return 0
    this.#asked = this.all.arrivals
    return this.size + (claim.phase === 'held' ? 0 : 1)
  }

  override letIn(claim: Claim): void {
    const { front } = this
    const { baton } = claim
    if (front?.claim !== claim || !baton) return
    if (this.#baton !== baton) this.#invited = this.all.arrivals
    this.#baton = baton
    while (this.#isNextAskedFor && this.isNextInOrder && !baton.isOutOfFences && front.canGoOn)
      this.takeNext()?.join(claim, baton.takeFence())
    baton.dropFences()
    this.#goOn()
    this.goOnHere()
  }

  /** A writer that waits stops those who come later; those who were here when the grant came enter together. */
  override get isNextInOrder(): boolean {
    const { next, front } = this
    if (!next || !super.isNextInOrder) return false
    return front?.claim.baton?.isWanted !== true || next.arrival <= this.#invited
  }

  get #isNextAskedFor(): boolean {
    const { next } = this
    return next !== undefined && next.arrival <= this.#asked
  }

  /** Those who wait here come in with the next answer; where the turn is over, they stand in the store's line again, behind all others. */
  #goOn(): void {
    const { front } = this
    if (this.size === 0 || front?.claim.phase !== 'held') return
    if (front.canGoOn && this.isNextInOrder) front.askForFences()
    else this.over(front.claim)
  }
}
