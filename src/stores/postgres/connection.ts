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
  StateView,
} from '../../contract/store.js'
import { toUs } from '../shared/time.js'
import type { PostgresBackend } from './backend.js'
import { checkServer } from './check.js'
import { closed } from './failures.js'
import { claimRequest, pulseLines, releaseRequest } from './requests.js'
import { decodeClaim, decodeLine, decodeState } from './text.js'

/** How many lines or states a listing reads at a time. */
const PAGE = 200
/** How long a pulse waits for the previous one. */
const PULSE_PATIENCE_MS = 1000

export class PostgresConnection implements Connection {
  readonly #backend: PostgresBackend
  readonly #space: string
  readonly #client: string
  /** Several at once would wait for the same rows, each with a connection of the pool. */
  readonly #pulses: FewAtOnce
  /** A claim was answered while no message would have been heard. */
  #mayHaveMissed = false
  #closing: Promise<void> | undefined

  constructor(backend: PostgresBackend, context: ClientContext) {
    this.#backend = backend
    this.#space = encodeText(context.space)
    this.#client = backend.join({ push: context.push, onGap: () => this.#onGap(context) })
    this.#pulses = new FewAtOnce({ env: backend.env, most: () => 1, patienceMs: PULSE_PATIENCE_MS })
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    this.#checkOpen()
    this.#backend.subscribe()
    const reply = await this.#claim(request)
    this.#mayHaveMissed ||= !this.#backend.isHearing
    if (reply.status !== 'waiting' || this.#backend.isHearing) return this.#asHeard(reply)
    // A grant before messages are heard goes unnoticed, so the claim is sent once more.
    await this.#backend.untilHearing()
    return this.#asHeard(await this.#claim(request))
  }

  #claim(request: ClaimRequest): Promise<ClaimReply> {
    const sent = claimRequest(request, this.#client, !this.#backend.isHearing)
    return this.#backend.submit(this.#space, request.resource, sent) as Promise<ClaimReply>
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    const values = [this.#space, pulseLines(beats, !this.#backend.isHearing), this.#backend.channel]
    const reply = await this.#pulses.run(() => this.#backend.call('pulse', values))
    const replies: BeatReply[] = []
    for (const [index, each] of reply as [number, BeatReply][]) replies[index] = this.#asHeard(each)
    return replies
  }

  async release(resource: string, id: string): Promise<boolean> {
    this.#checkOpen()
    return (await this.#backend.submit(this.#space, resource, releaseRequest(id))) as boolean
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    this.#checkOpen()
    const number = fence === null ? null : String(fence)
    const revoked = await this.#backend.call('evict', [
      this.#space,
      encodeText(resource),
      number,
      this.#backend.channel,
    ])
    return (revoked as ClaimView[]).map(decodeClaim)
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    this.#checkOpen()
    const values = [this.#space, encodeText(resource), encodeText(id), this.#backend.channel]
    return ((await this.#backend.call('cancel', values)) as ClaimView[]).map(decodeClaim)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    this.#checkOpen()
    const numbers = [String(declared), String(capacity)]
    await this.#backend.call('resize', [this.#space, encodeText(resource), ...numbers, this.#backend.channel])
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    this.#checkOpen()
    const name = [this.#space, encodeText(key)]
    if (!watch) return decodeState((await this.#backend.query('read', name)) as StateValue | null)
    this.#backend.subscribe()
    await this.#backend.untilHearing()
    const state = await this.#backend.query('watch', [...name, this.#backend.channel, this.#client])
    return decodeState(state as StateValue | null)
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    this.#checkOpen()
    const outcome = (await this.#backend.call('write', [
      this.#space,
      encodeText(key),
      expect === null ? null : String(expect),
      value === null ? null : encodeText(value),
      retentionMs === null ? null : String(toUs(retentionMs)),
      this.#backend.channel,
    ])) as StateOutcome
    return { written: outcome.written, current: decodeState(outcome.current) }
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    for (let after: string | null = ''; after !== null; ) {
      this.#checkOpen()
      const values = [this.#space, encodeText(prefix), after, String(PAGE)]
      const page = await this.#backend.query('state_page', values)
      const { states, next } = page as { states: StateView[]; next: string | null }
      for (const { key, value, version } of states)
        yield { key: decodeText(key), value: decodeText(value), version }
      after = next
    }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const found = await this.#backend.runner.ask(
      'SELECT json_agg(DISTINCT space)::text FROM holdfast.line',
      [],
    )
    return ((JSON.parse(found ?? 'null') ?? []) as string[]).map(decodeText)
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    this.#checkOpen()
    if (resource !== undefined) {
      const line = resource.startsWith(prefix)
        ? await this.#backend.query('inspect_line', [this.#space, encodeText(resource)])
        : null
      if (line && (line as LineView).capacity !== null) yield decodeLine(line as LineView)
      return
    }
    for (let after: string | null = ''; after !== null; ) {
      this.#checkOpen()
      const page = await this.#backend.query('inspect_page', [
        this.#space,
        encodeText(prefix),
        after,
        String(PAGE),
      ])
      const { lines, next } = page as { lines: LineView[]; next: string | null }
      for (const line of lines) if (line.claims.length > 0) yield decodeLine(line)
      after = next
    }
  }

  async check(): Promise<Finding[]> {
    this.#checkOpen()
    return checkServer(this.#backend, this)
  }

  close(): Promise<void> {
    this.#closing ??= this.#backend.leave(this.#client)
    return this.#closing
  }

  /** A client that hears no push is not told that nobody waits: it would not learn of a change. */
  #asHeard<T extends ClaimReply | BeatReply>(reply: T): T {
    if (!('isWanted' in reply) || this.#backend.isHearing) return reply
    const { isWanted: _isWanted, ...told } = reply
    return told as T
  }

  #onGap({ push }: ClientContext): void {
    if (this.#mayHaveMissed) push({ type: 'gap' })
    this.#mayHaveMissed = this.#backend.isHearing
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}
