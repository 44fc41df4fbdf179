import type { ClaimReply, ClaimRequest, Refused } from '../../contract/store.js'
import { ZooKeeperError } from '../../drivers/zookeeper/index.js'
import type { ClaimTable } from '../shared/claim-table.js'
import type { LineClaim } from './claim.js'
import type { ListedLine } from './line.js'
import { claimReply } from './replies.js'
import type { ZooKeeperSpace } from './space.js'
import { adopt, overtake } from './takeover.js'

/** Puts claims into their lines, each in the way of its mode. */
export class ClaimEntry {
  readonly #space: ZooKeeperSpace
  readonly #claims: ClaimTable<LineClaim>

  constructor(space: ZooKeeperSpace, claims: ClaimTable<LineClaim>) {
    this.#space = space
    this.#claims = claims
  }

  /**
   * The reply to a `claim` call that was made at `callAt`, for a new claim or one that is in line.
   */
  async reply(claim: LineClaim, request: ClaimRequest, callAt: number): Promise<ClaimReply> {
    const turn = claim.calls.enter()
    if (turn) await turn
    try {
      if (claim.attempt.isUncertain) await claim.recover()
      if (claim.state === 'waiting') await claim.position.update()
      const refusal = claim.state === 'new' ? await this.#enter(claim, request) : null
      if (refusal) return refusal
      if (request.mode === 'steal') await overtake(this.#space, claim, request)
      if (claim.state === 'waiting' && request.mode === 'try')
        return await this.#refuse(claim, { reason: 'busy' })
      if (isTooMany(claim, request)) return await this.#refuse(claim, { reason: 'full' })
      if (claim.state !== 'gone') return claimReply(this.#space.session, claim, callAt)
    } finally {
      claim.calls.leave()
    }
    // The session ended meanwhile. If the claim got a node in the next session, it has to be
    // removed.
    this.#claims.abandon(claim)
    const message = `The session ended before '${request.resource}' was granted`
    throw new ZooKeeperError('SESSION_EXPIRED', message)
  }

  /** The refusal; null: the claim is in line. */
  async #enter(claim: LineClaim, request: ClaimRequest): Promise<ClaimReply | null> {
    const { mode, resource } = request
    if (mode === 'try' || mode === 'adopt') {
      const entered = await this.#enterAfterLook(claim, request)
      if (entered !== null) return entered === 'in line' ? null : entered
    }
    const line = await claim.attempt.join()
    if (!line) {
      claim.grantAlone()
      return null
    }
    this.#removeStaleMark(resource, line)
    if (!line.agrees(request))
      return this.#refuse(claim, { reason: 'capacity', capacity: line.capacity ?? 0 })
    // A steal first takes the holds ahead of it.
    if (mode !== 'steal') await claim.position.update(line)
    return null
  }

  /** For the modes that look at the line first. null: the claim may join it. */
  async #enterAfterLook(claim: LineClaim, request: ClaimRequest): Promise<ClaimReply | 'in line' | null> {
    const { resource, adopts } = request
    // The line has to show the claims that came before this one.
    await this.#space.joins.drained(resource)
    if (!adopts) {
      // A try that fails leaves no trace, not even for a moment.
      const refusal = refusalIn(await this.#space.list(resource), request)
      return refusal && { status: 'refused', ...refusal }
    }
    const adopted = await adopt(this.#space, claim, request, adopts)
    if (adopted !== true) return adopted
    await claim.position.update()
    return 'in line'
  }

  #removeStaleMark(resource: string, { isMarkStale, mark }: ListedLine): void {
    if (!isMarkStale) return
    const path = `${this.#space.lineOf(resource)}/${mark?.name}`
    this.#space.session.zk.delete(path).catch(() => {})
  }

  async #refuse(claim: LineClaim, why: Omit<Refused, 'status'>): Promise<ClaimReply> {
    await claim.leave().catch(() => this.#claims.abandon(claim))
    return { status: 'refused', ...why }
  }
}

/**
 * Whether too many wait ahead of a claim that has just joined. Each claim sees those ahead of it,
 * so of many that join at once only as many stay as may.
 */
function isTooMany(claim: LineClaim, { maxWaiters }: ClaimRequest): boolean {
  if (maxWaiters === undefined || claim.state !== 'waiting' || claim.expiry.hasWaited) return false
  return claim.position.ahead >= maxWaiters
}

/** Why a try cannot be granted at once. */
function refusalIn(line: ListedLine, request: ClaimRequest): Omit<Refused, 'status'> | null {
  const capacity = line.capacity ?? request.capacity
  if (!line.agrees(request)) return { reason: 'capacity', capacity }
  const used = line.claims.reduce((sum, { permits }) => sum + permits, 0)
  return used + request.permits > capacity ? { reason: 'busy' } : null
}
