import { FewAtOnce } from '../../base/few-at-once.js'
import { decodeText, encodeText } from '../../base/text.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
} from '../../contract/store.js'
import { checkServer } from './check.js'
import { closed } from './failures.js'
import { decodeClaim, decodeLine, decodeState } from './text.js'
import type { Turns } from './turns.js'
import type { PostgresUser } from './user.js'

const LINES_AT_ONCE = 200
/** How long a pulse waits for the one before it. */
const PULSE_PATIENCE_MS = 1000

export class PostgresConnection implements Connection {
  readonly #user: PostgresUser
  readonly #space: string
  readonly #client: string
  readonly #turns: Turns
  /** All at once they would only wait for the same rows, each with a connection of the pool. */
  readonly #pulses: FewAtOnce
  /** Something was answered while no message would have been heard. */
  #mayHaveMissed = false
  #closing: Promise<void> | undefined

  constructor(user: PostgresUser, context: ClientContext) {
    this.#user = user
    this.#space = encodeText(context.space)
    this.#client = user.join({ push: context.push, onGap: () => this.#onGap(context) })
    this.#turns = user.turnsOf(this.#space)
    this.#pulses = new FewAtOnce({ env: user.env, most: () => 1, patienceMs: PULSE_PATIENCE_MS })
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    this.#checkOpen()
    this.#user.listen()
    const reply = await this.#claim(request)
    this.#mayHaveMissed ||= !this.#user.ears.isHearing
    if (reply.status !== 'waiting' || this.#user.ears.isHearing) return this.#asHeard(reply)
    // Whoever promotes it before messages are heard tells nobody: its place is kept, and it is asked for once more.
    await this.#user.heard()
    return this.#asHeard(await this.#claim(request))
  }

  async #claim(request: ClaimRequest): Promise<ClaimReply> {
    const { mode, permits, capacity, leaseMs, presenceMs, maxHoldMs, floor, block, adopts } = request
    return this.#turns.submit(request.resource, {
      mode,
      id: encodeText(request.id),
      client: this.#client,
      permits,
      capacity,
      lease: toUs(leaseMs),
      presence: toUs(presenceMs),
      max_hold: maxHoldMs === null ? null : toUs(maxHoldMs),
      floor,
      block,
      info: encodeText(request.info),
      ...(this.#user.ears.isHearing ? {} : { deaf: true }),
      ...(adopts ? { old: encodeText(adopts.id), old_fence: adopts.fence } : {}),
    }) as Promise<ClaimReply>
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    const lines = groupByLine(beats, !this.#user.ears.isHearing)
    const values = [this.#space, JSON.stringify(lines), this.#user.channel]
    const reply = await this.#pulses.run(() => this.#user.call('pulse', values))
    const replies: BeatReply[] = []
    for (const [index, each] of reply as [number, BeatReply][]) replies[index] = this.#asHeard(each)
    return replies
  }

  async release(resource: string, id: string): Promise<boolean> {
    this.#checkOpen()
    return (await this.#turns.submit(resource, { mode: 'release', id: encodeText(id) })) as boolean
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    this.#checkOpen()
    const number = fence === null ? null : String(fence)
    const robbed = await this.#user.call('evict', [
      this.#space,
      encodeText(resource),
      number,
      this.#user.channel,
    ])
    return (robbed as ClaimView[]).map(decodeClaim)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    this.#checkOpen()
    const numbers = [String(declared), String(capacity)]
    await this.#user.call('resize', [this.#space, encodeText(resource), ...numbers, this.#user.channel])
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    this.#checkOpen()
    const name = [this.#space, encodeText(key)]
    if (!watch) return decodeState((await this.#user.look('read', name)) as StateValue | null)
    this.#user.listen()
    await this.#user.heard()
    const state = await this.#user.look('watch', [...name, this.#user.channel, this.#client])
    return decodeState(state as StateValue | null)
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    this.#checkOpen()
    const outcome = (await this.#user.call('write', [
      this.#space,
      encodeText(key),
      expect === null ? null : String(expect),
      value === null ? null : encodeText(value),
      retentionMs === null ? null : String(toUs(retentionMs)),
      this.#user.channel,
    ])) as StateOutcome
    return { written: outcome.written, current: decodeState(outcome.current) }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const found = await this.#user.ask('SELECT json_agg(DISTINCT space)::text FROM holdfast.line', [])
    return ((JSON.parse(found ?? 'null') ?? []) as string[]).map(decodeText)
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    this.#checkOpen()
    if (resource !== undefined) {
      const line = resource.startsWith(prefix)
        ? await this.#user.look('look_at', [this.#space, encodeText(resource)])
        : null
      if (line && (line as LineView).capacity !== null) yield decodeLine(line as LineView)
      return
    }
    for (let after: string | null = ''; after !== null; ) {
      this.#checkOpen()
      const page = await this.#user.look('look', [
        this.#space,
        encodeText(prefix),
        after,
        String(LINES_AT_ONCE),
      ])
      const { lines, next } = page as { lines: LineView[]; next: string | null }
      for (const line of lines) if (line.claims.length > 0) yield decodeLine(line)
      after = next
    }
  }

  async check(): Promise<Finding[]> {
    this.#checkOpen()
    return checkServer(this.#user, this)
  }

  close(): Promise<void> {
    this.#closing ??= this.#user.leave(this.#client)
    return this.#closing
  }

  /** Whoever does not hear would not learn that somebody begins to wait: that nobody does is said only to those who hear. */
  #asHeard<T extends ClaimReply | BeatReply>(reply: T): T {
    if (!('isWanted' in reply) || this.#user.ears.isHearing) return reply
    const { isWanted: _isWanted, ...told } = reply
    return told as T
  }

  #onGap({ push }: ClientContext): void {
    if (this.#mayHaveMissed) push({ type: 'gap' })
    this.#mayHaveMissed = this.#user.ears.isHearing
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

/** In the words of the routine `pulse`. */
function groupByLine(beats: readonly Beat[], isDeaf: boolean): { resource: string; beats: object[] }[] {
  const lines = new Map<string, object[]>()
  beats.forEach(({ resource, id, leaseMs, presenceMs, permits, block }, n) => {
    const beat = {
      n,
      id: encodeText(id),
      lease: toUs(leaseMs),
      presence: toUs(presenceMs),
      permits,
      block,
      ...(isDeaf ? { deaf: true } : {}),
    }
    const known = lines.get(resource)
    if (known) known.push(beat)
    else lines.set(resource, [beat])
  })
  return [...lines].map(([resource, each]) => ({ resource: encodeText(resource), beats: each }))
}

/** Beyond this no sum with the clock would be exact; it is a hundred years and more. */
function toUs(ms: number): number {
  return Math.min(Math.round(ms * 1000), 2 ** 52)
}
