import type { Operation } from '../../drivers/etcd/index.js'
import type { EtcdClaim } from './claim.js'
import { askAgain, isUncertain } from './failures.js'
import type { EtcdLine } from './line.js'
import { FENCES_EACH } from './rows.js'
import type { EtcdSpace } from './space.js'

/** How many claims enter a line in one transaction. */
const MOST_TOGETHER = 60
/** How often a transaction that the guard refused is sent again. */
const MOST_REFUSALS = 5

interface Join {
  readonly claim: EtcdClaim
  readonly resolve: (refusal: null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Puts the claims of this client into one line, in the order in which they came. The servers do not
 * keep the order of requests, so the next ones are sent when the answer to the last has come.
 */
export class LineJoins {
  readonly #space: EtcdSpace
  readonly #line: EtcdLine
  #waiting: Join[] = []
  #isRunning = false

  constructor(space: EtcdSpace, line: EtcdLine) {
    this.#space = space
    this.#line = line
  }

  /** Nobody is refused. */
  join(claim: EtcdClaim): Promise<null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ claim, resolve, reject })
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      const turn = this.#line.entries.enter()
      if (turn) await turn
      const group = this.#take()
      try {
        await this.#enter(group.map(({ claim }) => claim))
        for (const { resolve } of group) resolve(null)
      } catch (error) {
        for (const { reject } of group) reject(error)
      } finally {
        this.#line.entries.leave()
      }
    }
    this.#isRunning = false
  }

  /** As many as have room in the fences of one revision. */
  #take(): Join[] {
    let fences = 0
    const tooMany = this.#waiting.findIndex(({ claim }, index) => {
      fences += claim.request.block
      return index === MOST_TOGETHER || fences > FENCES_EACH
    })
    return this.#waiting.splice(0, tooMany < 0 ? this.#waiting.length : tooMany)
  }

  async #enter(claims: readonly EtcdClaim[]): Promise<void> {
    const { session, batch } = this.#space
    for (let count = 1; count <= MOST_REFUSALS; count++) {
      const ready = session.ready()
      const lease = typeof ready === 'bigint' ? ready : await ready
      for (const claim of claims) claim.checkWanted()
      const puts = this.#puts(claims, lease)
      const compare = [session.guard, ...claims.map(({ isNew }) => isNew)]
      const reads = this.#line.isWatched ? [] : [this.#space.listing(this.#line.resource)]
      try {
        const answer = await batch.run({ compare, success: [...puts, ...reads] })
        if (answer.succeeded) return this.#entered(claims, answer.revision, answer.results[puts.length]?.keys)
      } catch (error) {
        if (isUncertain(error)) for (const claim of claims) claim.isUncertain = true
        throw error
      }
      await session.readGuard()
    }
    throw askAgain('The claims of this client were disturbed too often')
  }

  #puts(claims: readonly EtcdClaim[], lease: bigint): Operation[] {
    let offset = 0
    return claims.map((claim) => {
      const put = claim.prepare(lease, offset)
      offset += claim.request.block
      return put
    })
  }

  #entered(
    claims: readonly EtcdClaim[],
    revision: number,
    keys: Parameters<EtcdLine['load']>[0] | undefined,
  ): void {
    for (const claim of claims) claim.onKey(revision, revision)
    if (keys) this.#line.load(keys, revision)
    else this.#line.settle()
  }
}
