import type { ClaimReply, ClaimRequest, Push } from '../../contract/store.js'
import type { RedisBackend } from './backend.js'
import type { ClientChannel } from './client-channel.js'
import { outOfReach } from './failures.js'
import { FirstRequests } from './first-requests.js'
import { boundedMode } from './lua/format.js'
import { type RedisNames, token } from './names.js'
import { claimReply, releaseReply, toUs } from './replies.js'

/** A grant that too few replicas have. */
const NOT_REPLICATED = new Error('not replicated')

/** The claims and releases of one client. */
export class RedisClaims {
  readonly #backend: RedisBackend
  readonly #names: RedisNames
  readonly #channel: ClientChannel
  readonly #push: (news: Push) => void
  readonly #firstRequests: FirstRequests
  /** By id of a claim, its latest attempt that is not answered. */
  readonly #latest = new Map<string, object>()

  constructor(backend: RedisBackend, names: RedisNames, channel: ClientChannel, push: (news: Push) => void) {
    this.#backend = backend
    this.#names = names
    this.#channel = channel
    this.#push = push
    this.#firstRequests = new FirstRequests({
      send: (request) => this.#send(request),
      isSubscribed: () => channel.isSubscribed,
      subscribed: () => channel.subscribe(),
    })
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    const { subscription, replicas } = this.#backend
    void this.#channel.subscribe()
    // Without messages a waiter would learn of its grant by a heartbeat only: the caller should
    // rather know what is missing.
    if (subscription.refusal) return Promise.reject(subscription.refusal)
    return replicas ? this.#claimDurably(request, replicas.count) : this.#claim(request)
  }

  async #claimDurably(request: ClaimRequest, replicas: number): Promise<ClaimReply> {
    const attempt = {}
    const isLatest = (): boolean => this.#latest.get(request.id) === attempt
    this.#latest.set(request.id, attempt)
    try {
      return await this.#claim(request)
    } catch (error) {
      if (error !== NOT_REPLICATED) throw error
      // A later attempt under the same id has the same grant, and may have found enough replicas
      // for it: it decides.
      if (isLatest()) await this.release(request.resource, request.id)
      throw outOfReach(`fewer than ${replicas} replicas have the grant; it was given back`)
    } finally {
      if (isLatest()) this.#latest.delete(request.id)
    }
  }

  #claim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#firstRequests.areOver) return this.#send(request)
    return this.#firstRequests.claim(request).finally(() => this.#channel.onAnswer())
  }

  #send(request: ClaimRequest): Promise<ClaimReply> {
    const leaseUs = toUs(request.leaseMs)
    return this.#backend.batcher.submit(
      this.#names.line(request.resource),
      claimText(request, leaseUs, this.#channel.name),
      {
        read: (answer, isReplicated) => {
          const reply = claimReply(answer, leaseUs)
          if (!isReplicated && reply.status === 'granted') throw NOT_REPLICATED
          return reply
        },
      },
    )
  }

  release(resource: string, id: string): Promise<boolean> {
    this.#firstRequests.withdraw(id)
    const { batcher, runner } = this.#backend
    const { driver } = runner
    const losses = driver?.losses
    return batcher.submit(this.#names.line(resource), `release ${token(id)} ${this.#channel.name}`, {
      read: (answer) => {
        const { wasThere, next } = releaseReply(answer)
        if (next) this.#push({ type: 'granted', resource, ...next })
        // A client may have sent it twice, and the first one may have found the claim: the engine
        // asks again.
        if (wasThere || driver?.losses === losses) return wasThere
        this.#push({ type: 'gap' })
        throw outOfReach('the connection was lost meanwhile')
      },
      // The next holder may be this client's, which only the answer tells: if that is lost, all
      // waiters have to ask.
      onError: () => this.#push({ type: 'gap' }),
    })
  }
}

function joinMode({ mode, maxWaiters }: ClaimRequest): string {
  return maxWaiters === undefined || mode !== 'queue' ? mode : boundedMode(maxWaiters)
}

/** A claim as the form CALL of `lua/format.ts` has it. */
function claimText(request: ClaimRequest, leaseUs: string, channel: string): string {
  const { mode, adopts, id, presenceMs, maxHoldMs, permits, capacity, floor, block, info } = request
  const how = adopts ? `${mode}/${token(adopts.id)}/${adopts.fence}` : joinMode(request)
  const maxHold = maxHoldMs === null ? '0' : toUs(maxHoldMs)
  return `${how} ${token(id)} ${leaseUs} ${toUs(presenceMs)} ${permits} ${capacity} ${maxHold} ${floor} ${block} ${channel} ${info}`
}
