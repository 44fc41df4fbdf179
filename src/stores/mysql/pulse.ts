import { FewAtOnce } from '../../base/few-at-once.js'
import type { Beat, BeatReply, ClaimReply, Held, Waiting } from '../../contract/store.js'
import { groupByLine } from '../shared/beats.js'
import { toUs } from '../shared/time.js'
import type { MysqlBackend } from './backend.js'
import type { PlacedWaiting } from './known-claims.js'
import type { MysqlAnswer } from './line-calls.js'
import type { MysqlPoller } from './poller.js'
import { type AloneBeat, renewAlone, whichAreAlone } from './sql/alone.js'
import { bytes, json, keyOf, micros, number, toBytes, toHex } from './values.js'

/** How long a pulse waits for the previous one. */
const PULSE_PATIENCE_MS = 1000

/** A reply as the routines give it: a claim that waits also learns its place. */
export type Placed<T> = T | PlacedWaiting

/** The pulses of one client, one at a time, so that they take one connection. */
export class MysqlPulse {
  readonly #backend: MysqlBackend
  readonly #poller: MysqlPoller
  readonly #client: { readonly id: string; readonly space: string }
  readonly #oneAtATime: FewAtOnce

  constructor(backend: MysqlBackend, poller: MysqlPoller, client: { id: string; space: string }) {
    this.#backend = backend
    this.#poller = poller
    this.#client = client
    this.#oneAtATime = new FewAtOnce({ env: backend.env, most: () => 1, patienceMs: PULSE_PATIENCE_MS })
  }

  send(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#oneAtATime.run(() => this.#send(beats))
  }

  async #send(beats: readonly Beat[]): Promise<BeatReply[]> {
    const renewed = await this.#renewAlone(beats)
    const others = await this.#pulseLines(beats.filter((beat) => !renewed.has(beat)))
    return beats.map((beat) => renewed.get(beat) ?? (others.shift() as BeatReply))
  }

  /**
   * Most holds are alone in their lines: one UPDATE renews all of them that ask for the same lease.
   */
  async #renewAlone(beats: readonly Beat[]): Promise<Map<Beat, BeatReply>> {
    const { runner, at } = this.#backend
    const renewed = new Map<Beat, BeatReply>()
    for (const [leaseMs, known] of this.#mayBeAlone(beats)) {
      const holds = [...known.values()]
      const { rows } = await runner.change(renewAlone(runner.names, holds, toUs(leaseMs), at))
      const left = rows === holds.length ? null : await this.#leaseLeft(holds)
      for (const [beat, { line, fence }] of known) {
        const leftMs = left ? left.get(line) : leaseMs
        if (leftMs === undefined) continue
        const reply: Held = { status: 'held', fence, leaseMs: leftMs }
        this.#note(beat, line, reply)
        renewed.set(beat, reply)
      }
    }
    return renewed
  }

  /** By line: what is left of the leases of the holds that are alone. */
  async #leaseLeft(holds: readonly AloneBeat[]): Promise<Map<string, number>> {
    const { runner, at } = this.#backend
    const rows = await runner.query(whichAreAlone(runner.names, holds, at))
    return new Map(
      rows.map((row) => JSON.parse(row) as [string, number]).map(([line, us]) => [line, us / 1000]),
    )
  }

  /**
   * By lease: the holds that are only renewed, and may be alone in their lines. Of a line's beats
   * only the first: the others come after it.
   */
  #mayBeAlone(beats: readonly Beat[]): Map<number, Map<Beat, AloneBeat>> {
    const found = new Map<number, Map<Beat, AloneBeat>>()
    const lines = new Set<string>()
    for (const beat of beats) {
      const { resource, id, leaseMs, permits, block, fences } = beat
      const line = keyOf(this.#client.space, resource)
      if (lines.has(line)) continue
      lines.add(line)
      const fence = this.#poller.claims.fenceToRenew(line, id, leaseMs)
      if (fence === undefined || permits !== undefined || block !== undefined || fences) continue
      const alike = found.get(leaseMs) ?? new Map<Beat, AloneBeat>()
      found.set(leaseMs, alike)
      alike.set(beat, { line, id: toHex(id), fence })
    }
    return found
  }

  async #pulseLines(beats: readonly Beat[]): Promise<BeatReply[]> {
    if (beats.length === 0) return []
    const { runner, clients, at } = this.#backend
    const { id: client, space } = this.#client
    const groups = groupByKey(space, beats)
    const values = [toBytes(client), bytes(groups.lines), json(groups.json), at]
    const [row = ''] = await runner.call('pulse', values)
    const { reply, news } = JSON.parse(row) as MysqlAnswer<Placed<BeatReply>[]>
    clients.tell(space, news, (line) => groups.resources.get(line))
    const replies: BeatReply[] = []
    groups.order.forEach(([index, line], place) => {
      const beat = beats[index] as Beat
      if (beat.permits !== undefined) this.#poller.share(line, beat.id)
      const placed = reply[place] as Placed<BeatReply>
      this.#note(beat, line, placed)
      replies[index] = withoutPlace(placed)
    })
    return replies
  }

  /** A claim that was released while the pulse was under way stays forgotten. */
  #note({ resource, id }: Beat, line: string, reply: Placed<BeatReply>): void {
    if (this.#poller.claims.has(line, id)) noteReply(this.#poller, resource, line, id, reply, false)
  }
}

/** Tells the poller what the store has answered for a claim. */
export function noteReply(
  poller: MysqlPoller,
  resource: string,
  line: string,
  id: string,
  reply: Placed<ClaimReply | BeatReply>,
  isExclusive: boolean,
): void {
  if (isPlaced(reply)) poller.wait(resource, line, id, reply, isExclusive)
  else if (reply.status === 'granted' || reply.status === 'held')
    poller.hold(resource, line, id, reply, isExclusive)
  else poller.claims.forget(line, id)
}

/** A reply as the contract has it. */
export function withoutPlace<T extends ClaimReply | BeatReply>(reply: Placed<T>): T | Waiting {
  if (!isPlaced(reply)) return reply
  const { place: _place, nextPlace: _nextPlace, ...waiting } = reply
  return waiting
}

function isPlaced(reply: object): reply is PlacedWaiting {
  return 'place' in reply
}

/** The beats of one pulse as the routine takes them. */
interface KeyedBeats {
  /** The keys of the lines in their order, without anything between. */
  readonly lines: string
  /** An array for each line, with an array for each beat. */
  readonly json: string
  /** In the order of the answers: the index of the beat, and the key of its line. */
  readonly order: readonly (readonly [index: number, line: string])[]
  /** By the key of the line. */
  readonly resources: ReadonlyMap<string, string>
}

/** The lines are locked in the order of their keys, so that two pulses cannot deadlock. */
function groupByKey(space: string, beats: readonly Beat[]): KeyedBeats {
  const groups = groupByLine(beats).map((group) => ({ ...group, line: keyOf(space, group.resource) }))
  groups.sort((a, b) => (a.line < b.line ? -1 : 1))
  const arrays = groups.map(
    ({ indexes }) => `[${indexes.map((index) => beatValues(beats[index] as Beat)).join(',')}]`,
  )
  return {
    lines: groups.map(({ line }) => line).join(''),
    json: `[${arrays.join(',')}]`,
    order: groups.flatMap(({ indexes, line }) => indexes.map((index) => [index, line] as const)),
    resources: new Map(groups.map(({ line, resource }) => [line, resource])),
  }
}

function beatValues({ id, leaseMs, presenceMs, permits, block, fences }: Beat): string {
  const numbers = [micros(leaseMs), micros(presenceMs), number(permits ?? null), number(block ?? null)]
  if (fences) numbers.push(number(fences.first), number(fences.count))
  return `["${toHex(id)}",${numbers.join(',').replaceAll('NULL', 'null')}]`
}
