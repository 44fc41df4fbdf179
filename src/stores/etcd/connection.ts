import { nothing } from '../../base/nothing.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import { ClaimTable } from '../shared/claim-table.js'
import { EtcdAdmin } from './admin.js'
import { checkEtcd } from './check.js'
import { EtcdClaim } from './claim.js'
import { EtcdEntry } from './entry.js'
import { askAgain, closed, storeFailure } from './failures.js'
import { verifyLines } from './pulse.js'
import { beatReply } from './replies.js'
import { checkBlock } from './rows.js'
import { EtcdSpace } from './space.js'
import { EtcdStates } from './states.js'

/** One client's connection. */
export class EtcdConnection implements Connection {
  readonly #space: EtcdSpace
  readonly #claims: ClaimTable<EtcdClaim>
  readonly #entry: EtcdEntry
  readonly #admin: EtcdAdmin
  readonly #states: EtcdStates
  #closing: Promise<void> | null = null

  constructor(settings: Omit<ConstructorParameters<typeof EtcdSpace>[0], 'onLeaseEnd'>) {
    this.#space = new EtcdSpace({ ...settings, onLeaseEnd: () => this.#onLeaseEnd() })
    const make = (request: ClaimRequest, key: string, now: number): EtcdClaim =>
      new EtcdClaim(this.#space, request, key, now)
    this.#claims = new ClaimTable(settings.env, make, nothing)
    this.#entry = new EtcdEntry(this.#space)
    this.#admin = new EtcdAdmin(this.#space, (resource, id) => this.#leftMs(resource, id))
    this.#states = new EtcdStates(this.#space)
  }

  // These two do without `#call`: each async function costs, and they are in every lock.

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#closing) throw closed()
    try {
      checkBlock(request.block)
      const callAt = this.#space.env.now()
      const claim = this.#claims.open(request, callAt)
      this.#claims.schedule(claim)
      const reply = await this.#entry.reply(claim, callAt)
      if (reply.status === 'refused') this.#claims.delete(claim)
      // It has expired meanwhile and is being removed: the reply is not true any more.
      else if (!this.#claims.has(claim)) throw askAgain(`The answer for '${request.resource}' came too late`)
      else this.#claims.schedule(claim)
      return reply
    } catch (error) {
      throw storeFailure(error)
    }
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#call(async () => {
      for (const { block } of beats) if (block !== undefined) checkBlock(block)
      const callAt = this.#space.env.now()
      this.#claims.dropExpired()
      const known = beats.map((beat) => this.#inLine(beat, callAt)).filter((claim) => claim !== undefined)
      if (known.length > 0) await this.#space.session.lease.renew()
      await verifyLines(this.#space, known)
      // Permits that are given back may let others in before the reply.
      const isShrinking = beats.some(({ permits }) => permits !== undefined)
      for (const claim of known) claim.isFresh = !isShrinking
      this.#claims.clean()
      return Promise.all(beats.map((beat) => this.#beat(beat, callAt)))
    })
  }

  async release(resource: string, id: string): Promise<boolean> {
    if (this.#closing) throw closed()
    const claim = this.#claims.get(resource, id)
    if (!claim) return false
    const wasAlive = claim.isAlive(this.#space.env.now())
    const turn = claim.calls.enter()
    if (turn) await turn
    try {
      const hasLeft = await claim.leave()
      this.#claims.delete(claim)
      return hasLeft && wasAlive
    } catch (error) {
      this.#claims.addLeftover(claim)
      throw storeFailure(error)
    } finally {
      claim.calls.leave()
    }
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#call(() => this.#admin.evict(resource, fence))
  }

  cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#call(() => this.#admin.cancel(resource, id))
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#call(() => this.#admin.resize(resource, declared, capacity))
  }

  read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.#call(() => this.#states.read(key, watch))
  }

  unwatch(key: string): void {
    this.#states.unwatch(key)
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    yield* this.#each(this.#states.list(prefix))
  }

  write(change: StateChange): Promise<StateOutcome> {
    return this.#call(() => this.#states.write(change))
  }

  spaces(): Promise<string[]> {
    return this.#call(() => this.#admin.spaces())
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    yield* this.#each(this.#admin.inspect(query))
  }

  trouble(): string | null {
    return this.#space.client.trouble
  }

  check(): Promise<Finding[]> {
    return this.#call(() => checkEtcd(this.#space, this))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #onLeaseEnd(): void {
    this.#claims.loseAll()
    this.#space.push({ type: 'gap' })
  }

  async #beat(beat: Beat, callAt: number): Promise<BeatReply> {
    const claim = this.#inLine(beat, callAt)
    if (!claim) return { status: 'gone' }
    claim.expiry.renew(callAt, beat.leaseMs, beat.presenceMs)
    this.#claims.schedule(claim)
    if (claim.state !== 'held') return beatReply(this.#space, claim, callAt)
    const { permits, block } = beat
    // One after the other: a second pulse would not know the value that the first one has written.
    if (permits !== undefined) await claim.calls.run(() => claim.shrink(permits))
    const first = block === undefined ? null : await claim.calls.run(() => claim.reserve())
    if (!claim.isAlive(callAt)) return { status: 'gone' }
    const reply = beatReply(this.#space, claim, callAt)
    return first !== null && reply.status === 'held' ? { ...reply, block: first } : reply
  }

  #inLine({ resource, id }: Beat, now: number): EtcdClaim | undefined {
    const claim = this.#claims.get(resource, id)
    return claim?.isAlive(now) && claim.state !== 'new' ? claim : undefined
  }

  #leftMs(resource: string, id: string): number | undefined {
    const claim = this.#claims.get(resource, id)
    return claim && claim.expiry.at - this.#space.env.now()
  }

  async #close(): Promise<void> {
    this.#claims.cancelTimer()
    this.#claims.clear()
    this.#claims.stopCleaning()
    this.#space.stop()
    // Revokes the lease, and with it removes every claim that is left.
    await this.#space.client.close()
  }

  async *#each<T>(items: AsyncIterable<T>): AsyncIterable<T> {
    const iterator = items[Symbol.asyncIterator]()
    for (;;) {
      const item = await this.#call(() => iterator.next())
      if (item.done) return
      yield item.value
    }
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw closed()
    try {
      return await work()
    } catch (error) {
      throw storeFailure(error)
    }
  }
}
