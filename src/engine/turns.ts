import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { admit, type Place } from '../contract/admit.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { type Limits, waitLocally } from './limits.js'

/** A place in the line of those who want to be inside. */
interface Turn extends Place {
  granted: boolean
  readonly begun: Deferred<void>
}

/** A line inside this process, by the same rule as in a store: those who share go in together, in order of arrival. */
export class Turns {
  readonly #line = new Set<Turn>()

  /** Whether a turn would begin at once. */
  isFree(permits: number): boolean {
    const mine = { permits, granted: false }
    return admit([...this.#line, mine], EXCLUSIVE).includes(mine)
  }

  /** Waits for its turn; the returned function ends it. */
  async take(env: Env, permits: number, limits: Limits, resource: string): Promise<() => void> {
    const turn: Turn = { permits, granted: false, begun: deferred<void>() }
    const leave = (): void => {
      if (this.#line.delete(turn)) this.#admit()
    }
    this.#line.add(turn)
    this.#admit()
    if (turn.granted) return leave
    try {
      await waitLocally(env, turn.begun.promise, limits, resource)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }

  #admit(): void {
    for (const turn of admit(this.#line, EXCLUSIVE)) {
      turn.granted = true
      turn.begun.resolve()
    }
  }
}
