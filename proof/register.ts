import { memoryGuard } from '../src/fence/index.js'
import type { ReadRecord, WriteRecord } from './history.js'
import { nowUs } from './time.js'

/** What a worker asks: to write a value, or to read it (null). */
export interface Question {
  readonly register: string
  readonly hold: string
  readonly fence: number
  readonly value: string | null
  readonly from: number
}

/** Values that are read and written under fences only. */
export class Registers {
  readonly #guard = memoryGuard()
  readonly #values = new Map<string, string>()

  answer({ register, hold, fence, value, from }: Question): ReadRecord | WriteRecord {
    const isAccepted = this.#isFresh(register, fence)
    const asked = { register, hold, fence, from, isAccepted }
    if (value === null) {
      const read = isAccepted ? (this.#values.get(register) ?? null) : null
      return { type: 'read', ...asked, value: read, to: nowUs() }
    }
    if (isAccepted) this.#values.set(register, value)
    return { type: 'write', ...asked, value, to: nowUs() }
  }

  #isFresh(resource: string, fence: number): boolean {
    try {
      this.#guard.check({ resource, fence })
      return true
    } catch {
      return false
    }
  }
}
