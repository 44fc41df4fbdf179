import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { type Limits, waitLocally } from '../calls/limits.js'
import { admit, type Place } from '../contract/admit.js'
import { EXCLUSIVE } from '../contract/constants.js'

interface NestedRun extends Place {
  granted: boolean
  readonly begun: Deferred<void>
}

/** The runs inside one hold, admitted by the rule of the stores: in order, readers together. */
export class NestedRuns {
  readonly #line = new Set<NestedRun>()

  /** Whether a run could begin at once. */
  isFree(permits: number): boolean {
    const mine = { permits, granted: false }
    return admit([...this.#line, mine], EXCLUSIVE).includes(mine)
  }

  /** Waits until the run may begin; the returned function ends it. */
  async begin(env: Env, permits: number, limits: Limits, resource: string): Promise<() => void> {
    const run: NestedRun = { permits, granted: false, begun: deferred<void>() }
    const leave = (): void => {
      if (this.#line.delete(run)) this.#admit()
    }
    this.#line.add(run)
    this.#admit()
    if (run.granted) return leave
    try {
      await waitLocally(env, run.begun.promise, limits, resource)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }

  #admit(): void {
    for (const run of admit(this.#line, EXCLUSIVE)) {
      run.granted = true
      run.begun.resolve()
    }
  }
}
