import type { PeerClaim, TakeAnswer } from '../claim.js'
import type { PeerRequest } from '../options.js'
import type { Pause } from '../pause.js'
import type { RedissonClient } from './client.js'
import type { RedissonFormat } from './formats.js'
import { ownerAround, type RedissonOwner } from './owner.js'
import { lockAudience } from './wake-ups.js'

/** A request for one of Redisson's locks. */
export class RedissonClaim implements PeerClaim {
  readonly #client: RedissonClient
  readonly #format: RedissonFormat
  readonly #name: string
  #owner: RedissonOwner
  /** Whether the owner held the lock before. */
  #isNested: boolean
  /** The number of this entry of its owner, from the first attempt on. */
  #entry: number | undefined
  /** The entries of the owner after this one was released. */
  #remaining: number | undefined
  #keepMs = 0

  constructor(client: RedissonClient, format: RedissonFormat, name: string) {
    this.#client = client
    this.#format = format
    this.#name = name
    const around = ownerAround(client, format, name)
    this.#isNested = around !== undefined
    this.#owner = around ?? client.createOwner()
  }

  get owner(): RedissonOwner {
    return this.#owner
  }

  get hasPlace(): boolean {
    return this.#keepMs > 0 && this.#format.leaveLine !== undefined
  }

  async take(request: PeerRequest): Promise<TakeAnswer> {
    const [status, number] = (await this.#send(request)).split(' ')
    if (status === 'gone') {
      this.#beginAnew()
      return this.take(request)
    }
    if (status === 'busy') return { isGranted: false, retryMs: this.#client.retryMs(Number(number)) }
    // The next waiter may be a reader, too.
    if (this.#format.entry === 'read') this.#client.wakeUps.wakeFirst(this.#channel)
    return { isGranted: true, fence: number === undefined ? null : Number(number) }
  }

  #send({ leaseMs, waitMs }: PeerRequest): Promise<string> {
    const { calls, fairWaitMs } = this.#client
    const { take, keys, leaveLine, entry } = this.#format
    this.#entry ??= ++this.#owner.entries[entry]
    const args = [leaseMs, this.#owner.id, this.#entry, this.#isNested ? 1 : 0]
    if (leaveLine) {
      this.#keepMs = waitMs === 0 ? 0 : Math.ceil(waitMs < Infinity ? waitMs : fairWaitMs)
      args.push(this.#keepMs, waitMs > 0 ? 1 : 0)
    }
    return calls.run(take, keys(this.#name), ...args)
  }

  /** The server has lost the outer hold: this is an acquisition like any other. */
  #beginAnew(): void {
    this.#owner = this.#client.createOwner()
    this.#isNested = false
    this.#entry = undefined
  }

  get #channel(): string {
    const channel = this.#format.channel(this.#name)
    return this.#format.leaveLine ? `${channel}:${this.#owner.id}` : channel
  }

  listen(pause: Pause): Promise<void> {
    return this.#client.wakeUps.listen(this.#channel, pause, lockAudience)
  }

  unlisten(pause: Pause): void {
    this.#client.wakeUps.unlisten(this.#channel, pause)
  }

  async renew(leaseMs: number): Promise<boolean> {
    const { renew, keys } = this.#format
    return (await this.#client.calls.run(renew, keys(this.#name), leaseMs, this.#owner.id)) === '1'
  }

  release(): Promise<boolean> {
    const { calls } = this.#client
    const { release, keys, channel, entry } = this.#format
    this.#remaining ??= --this.#owner.entries[entry]
    const args = [this.#owner.id, this.#remaining, channel(this.#name)]
    return calls.wasHeld(async () => (await calls.run(release, keys(this.#name), ...args)) === '1')
  }

  async leave(): Promise<void> {
    const { leaveLine, keys, channel } = this.#format
    const args = [this.#owner.id, this.#keepMs, channel(this.#name)]
    if (leaveLine) await this.#client.calls.run(leaveLine, keys(this.#name), ...args)
    await this.release()
  }
}
