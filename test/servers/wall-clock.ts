import { chmodSync, closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile, type Preload } from './preload.js'

/** Of the numbers in the file, 8 bytes each: the jump, which drift is present, and two drifts. */
const [JUMP, PRESENT, DRIFTS, NUMBERS_EACH] = [0, 1, 2, 3]
/** A drift begins so much later, when it is certainly written. */
export const DRIFT_BEGINS_NS = 100_000_000n
const NUMBERS = DRIFTS + 2 * NUMBERS_EACH

/**
 * A wall clock that the tests move, for the processes that are started with its environment. Their
 * monotonic clock is left alone, except by a drift.
 */
export class WallClock implements Preload {
  /** null: it works. Otherwise why the clock of a process cannot be moved here. */
  readonly obstacle: string | null
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-wall-clock-'))
  #drift = { present: 0, gainedNs: 0n, sinceNs: 0n, ppm: 0n }

  constructor() {
    // PostgreSQL runs as a user of its own.
    chmodSync(this.#folder, 0o755)
    this.#write(
      0,
      Array.from({ length: NUMBERS }, () => 0n),
    )
    this.obstacle = compile('wall-clock.c', this.#shim)
  }

  get env(): Record<string, string> {
    return { LD_PRELOAD: this.#shim, HOLDFAST_WALL_OFFSET: this.#file }
  }

  /** Takes effect at once, in running processes as well. */
  set(offsetSeconds: number): void {
    this.#write(JUMP, [BigInt(offsetSeconds) * 1_000_000_000n])
  }

  /**
   * Ends a drift, and sets the wall clock right, as NTP would. The monotonic clock keeps what it has
   * gained.
   */
  setRight(): void {
    this.drift(0)
    this.#write(JUMP, [-this.#drift.gainedNs])
  }

  /**
   * In a moment both clocks run faster by so many millionths, or slower. No clock jumps: 0 lets them
   * run as the machine's, with what they have gained.
   */
  drift(ppm: number): void {
    const sinceNs = process.hrtime.bigint() + DRIFT_BEGINS_NS
    const { present, gainedNs, sinceNs: before, ppm: last } = this.#drift
    const gained = gainedNs + ((sinceNs - before) * last) / 1_000_000n
    this.#drift = { present: 1 - present, gainedNs: gained, sinceNs, ppm: BigInt(ppm) }
    this.#write(DRIFTS + NUMBERS_EACH * this.#drift.present, [gained, sinceNs, BigInt(ppm)])
    this.#write(PRESENT, [BigInt(this.#drift.present)])
  }

  /** Removes its files. The processes that use it have to end first. */
  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Never truncates the file: processes have it mapped. */
  #write(place: number, numbers: readonly bigint[]): void {
    const file = openSync(this.#file, constants.O_RDWR | constants.O_CREAT)
    writeSync(file, BigInt64Array.from(numbers), 0, 8 * numbers.length, 8 * place)
    closeSync(file)
  }

  get #shim(): string {
    return join(this.#folder, 'wall-clock.so')
  }

  get #file(): string {
    return join(this.#folder, 'clocks')
  }
}
