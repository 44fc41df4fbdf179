import { encodeText } from '../../base/text.js'
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
import type { PostgresUser } from './user.js'

const LINES_AT_ONCE = 200

export class PostgresConnection implements Connection {
  readonly #user: PostgresUser
  readonly #context: ClientContext
  readonly #space: string
  readonly #client: string
  #closing: Promise<void> | undefined

  constructor(user: PostgresUser, context: ClientContext) {
    this.#user = user
    this.#context = context
    this.#space = encodeText(context.space)
    this.#client = encodeText(context.id)
    user.join(context)
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    this.#checkOpen()
    this.#user.listen()
    const { permits, capacity, leaseMs, presenceMs, maxHoldMs, floor, block, adopts } = request
    const reply = await this.#user.call('claim', [
      this.#space,
      encodeText(request.resource),
      encodeText(request.id),
      this.#user.channel,
      this.#client,
      String(permits),
      String(capacity),
      toUs(leaseMs),
      toUs(presenceMs),
      maxHoldMs === null ? null : toUs(maxHoldMs),
      String(floor),
      String(block),
      encodeText(request.info),
      modeOf(request),
      adopts ? encodeText(adopts.id) : null,
      adopts ? String(adopts.fence) : null,
    ])
    return reply as ClaimReply
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    this.#checkOpen()
    const lines = groupByLine(beats)
    const reply = await this.#user.call('pulse', [this.#space, JSON.stringify(lines), this.#user.channel])
    const replies: BeatReply[] = []
    for (const [index, each] of reply as [number, BeatReply][]) replies[index] = each
    return replies
  }

  async release(resource: string, id: string): Promise<boolean> {
    this.#checkOpen()
    const reply = await this.#user.call('release', [
      this.#space,
      encodeText(resource),
      encodeText(id),
      this.#user.channel,
    ])
    return reply === true
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
      retentionMs === null ? null : toUs(retentionMs),
      this.#user.channel,
    ])) as StateOutcome
    return { written: outcome.written, current: decodeState(outcome.current) }
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
    this.#closing ??= this.#user.leave(this.#context)
    return this.#closing
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

/** In the words of the routine `pulse`. */
function groupByLine(beats: readonly Beat[]): { resource: string; beats: object[] }[] {
  const lines = new Map<string, object[]>()
  beats.forEach(({ resource, id, leaseMs, presenceMs, permits, block }, n) => {
    const beat = {
      n,
      id: encodeText(id),
      lease: Number(toUs(leaseMs)),
      presence: Number(toUs(presenceMs)),
      permits,
      block,
    }
    const known = lines.get(resource)
    if (known) known.push(beat)
    else lines.set(resource, [beat])
  })
  return [...lines].map(([resource, each]) => ({ resource: encodeText(resource), beats: each }))
}

function modeOf({ adopts, steal, queue }: ClaimRequest): string {
  if (adopts) return 'adopt'
  if (steal) return 'steal'
  return queue ? 'queue' : 'try'
}

/** Beyond this no sum with the clock would be exact; it is a hundred years and more. */
function toUs(ms: number): string {
  return String(Math.min(Math.round(ms * 1000), 2 ** 52))
}
