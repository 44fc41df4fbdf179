import type * as FastCheck from 'fast-check'
import { EXCLUSIVE } from '../../contract/constants.js'
import { type BeatPlan, CLIENTS, type Command, KEYS, RESOURCES, type Target, type Terms } from './commands.js'

type Clock = 'injected' | 'server'
type Want = Extract<Command, { type: 'claim' }>['want']
interface Weighted {
  readonly weight: number
  readonly arbitrary: FastCheck.Arbitrary<Command>
}

/**
 * Histories whose commands meet often: few clients, few names, few durations. A quarter each plays
 * on one mutex, on one read-write lock and on one semaphore, since a long line with the right one
 * at its head is rare where commands scatter; the rest on everything.
 */
export function historyArbitrary(
  fc: typeof FastCheck,
  clock: Clock,
  maxLength: number,
): FastCheck.Arbitrary<Command[]> {
  const draw = new Draw(fc, clock)
  const history = (...commands: Weighted[][]): FastCheck.Arbitrary<Command[]> =>
    fc.array(fc.oneof(...commands.flat(), ...draw.ofTime()), { maxLength, size: 'max' })
  return fc.oneof(
    history(draw.ofLines(draw.mutex('door'))),
    history(draw.ofLines(draw.readWrite(['door']))),
    history(draw.ofLines(draw.semaphore(['pool'])), draw.ofCapacity(['pool'])),
    history(
      draw.ofLines(
        fc.oneof(draw.readWrite(['door', 'door', 'pool']), draw.semaphore(['pool', 'pool', 'pool/deep'])),
      ),
      draw.ofCapacity(['pool', 'pool/deep']),
      draw.ofStates(),
      draw.ofViews(),
    ),
  )
}

/** How each field of one kind of command is drawn. */
type Fields<T extends Command['type']> = {
  readonly [K in Exclude<keyof Extract<Command, { type: T }>, 'type'>]: FastCheck.Arbitrary<
    Extract<Command, { type: T }>[K]
  >
}

class Draw {
  readonly #fc: typeof FastCheck
  readonly #clock: Clock
  readonly #client: FastCheck.Arbitrary<number>
  readonly #index: FastCheck.Arbitrary<number>
  /** Short enough to lapse within a history; with a server's clock so long that nothing does. */
  readonly #duration: FastCheck.Arbitrary<number>

  constructor(fc: typeof FastCheck, clock: Clock) {
    this.#fc = fc
    this.#clock = clock
    this.#client = fc.nat(CLIENTS - 1)
    this.#index = fc.nat(30)
    this.#duration =
      clock === 'server' ? fc.constantFrom(3_600_000, 7_200_000) : fc.constantFrom(50, 60, 100, 250, 1000)
  }

  ofLines(want: FastCheck.Arbitrary<Want>): Weighted[] {
    const fc = this.#fc
    const [client, index, terms] = [this.#client, this.#index, this.#terms()]
    const target = this.#target(['own', 'own', 'line', 'line', 'line', 'past', 'past', 'nowhere'])
    const mode = fc.constantFrom('queue', 'queue', 'queue', 'queue', 'try', 'try', 'steal')
    const fence = fc.constantFrom('right', 'right', 'right', 'past', 'never')
    const isElsewhere = fc.constantFrom(false, false, false, true)
    const beats = fc.array(this.#beat(target), { maxLength: 4 })
    const mostlyLive = this.#target(['line', 'line', 'own', 'past'])
    return [
      this.#command(10, 'claim', { client, want, mode, terms }),
      this.#command(2, 'adopt', { client, target: mostlyLive, fence, index, terms }),
      this.#command(1, 'resend', { index }),
      this.#command(5, 'pulse', { client, beats }),
      this.#command(4, 'release', { client, target, isElsewhere }),
      this.#command(1, 'evict', { client, target: mostlyLive, all: fc.boolean() }),
      this.#command(2, 'cancel', { client, target: mostlyLive }),
      this.#command(1, 'close', { client }),
    ]
  }

  ofCapacity(resources: readonly string[]): Weighted[] {
    const fc = this.#fc
    const capacity = fc.integer({ min: 1, max: 5 })
    const declared = fc.constantFrom(3, 3, 3, 1, 5)
    return [
      this.#command(3, 'resize', {
        client: this.#client,
        resource: fc.constantFrom(...resources),
        declared,
        capacity,
      }),
    ]
  }

  ofStates(): Weighted[] {
    const fc = this.#fc
    const client = this.#client
    const key = fc.constantFrom(...KEYS)
    const expect = fc.constantFrom('right', 'right', 'right', 'none', 'past')
    const value = fc.constantFrom('a', 'b', '', null)
    const retentionMs = this.#clock === 'server' ? fc.constant(null) : fc.constantFrom(null, 40, 90)
    return [
      this.#command(3, 'read', { client, key, watch: fc.boolean() }),
      this.#command(1, 'states', { client, prefix: fc.constantFrom('', 'latch', 'latch/', 'x') }),
      this.#command(4, 'write', { client, key, expect, value, retentionMs }),
    ]
  }

  ofViews(): Weighted[] {
    const prefix = this.#fc.constantFrom('', 'pool', 'pool/', 'x')
    const resource = this.#fc.constantFrom(undefined, ...RESOURCES)
    return [this.#command(1, 'inspect', { client: this.#client, prefix, resource })]
  }

  ofTime(): Weighted[] {
    if (this.#clock === 'server') return []
    const to = this.#fc.constantFrom('later', 'deadline', 'deadline')
    const ms = this.#fc.constantFrom(0, 0, 0, 1, -1, 7, 23)
    return [this.#command(4, 'advance', { to, ms, index: this.#index })]
  }

  mutex(resource: string): FastCheck.Arbitrary<Want> {
    return this.#fc.constant({ resource, permits: EXCLUSIVE, capacity: EXCLUSIVE })
  }

  readWrite(resources: readonly string[]): FastCheck.Arbitrary<Want> {
    const fc = this.#fc
    return fc.record({
      resource: fc.constantFrom(...resources),
      permits: fc.constantFrom(1, 1, EXCLUSIVE),
      capacity: fc.constant(EXCLUSIVE),
    })
  }

  /** Of 3 permits, and now and then somebody who believes otherwise. */
  semaphore(resources: readonly string[]): FastCheck.Arbitrary<Want> {
    const fc = this.#fc
    const resource = fc.constantFrom(...resources)
    const permits = fc.integer({ min: 1, max: 3 })
    const usual = fc.record({ resource, permits, capacity: fc.constant(3) })
    const unusual = fc.record({
      resource,
      permits: fc.integer({ min: 1, max: 5 }),
      capacity: fc.integer({ min: 1, max: 5 }),
    })
    return fc.oneof({ weight: 3, arbitrary: usual }, { weight: 2, arbitrary: unusual })
  }

  #terms(): FastCheck.Arbitrary<Terms> {
    const fc = this.#fc
    const isServer = this.#clock === 'server'
    return fc.record({
      leaseMs: this.#duration,
      presenceMs: this.#duration,
      maxHoldMs: isServer ? fc.constant(null) : fc.constantFrom(null, null, 40, 130),
      // A server's counter and clock are not ours to run ahead of.
      floor: isServer
        ? fc.constantFrom('none', 'seen')
        : fc.constantFrom('none', 'none', 'seen', 'ahead', 'absurd'),
      block: fc.constantFrom(1, 1, 4),
      maxWaiters: fc.constantFrom(undefined, undefined, undefined, 1, 2),
    })
  }

  #beat(target: FastCheck.Arbitrary<Target>): FastCheck.Arbitrary<BeatPlan> {
    const fc = this.#fc
    const fences = fc.record({
      first: fc.constantFrom('ahead', 'ahead', 'next', 'next', 'own', 'seen', 'never'),
      count: fc.constantFrom(1, 3),
      index: this.#index,
    })
    return fc.record({
      target,
      leaseMs: this.#duration,
      presenceMs: this.#duration,
      permits: fc.constantFrom(undefined, undefined, 1, 1, 2, 5),
      block: fc.constantFrom(undefined, undefined, undefined, 1, 8),
      fences: fc.option(fences, { nil: undefined, freq: 2 }),
    })
  }

  #target(among: readonly Target['among'][]): FastCheck.Arbitrary<Target> {
    return this.#fc.record({ among: this.#fc.constantFrom(...among), index: this.#index })
  }

  #command<T extends Command['type']>(weight: number, type: T, fields: Fields<T>): Weighted {
    // The compiler cannot see that `type` with its fields is a command.
    const record = { type: this.#fc.constant(type), ...fields } as never
    return { weight, arbitrary: this.#fc.record(record) as FastCheck.Arbitrary<Command> }
  }
}
