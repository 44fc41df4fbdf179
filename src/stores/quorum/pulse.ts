import type { Env } from '../../base/env.js'
import type { Beat, BeatReply, Held } from '../../contract/store.js'
import { FENCE_STEP } from './agreement.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { Members } from './members.js'
import type { Vote } from './vote.js'

/** How often further fences are asked for within one pulse, where members know of newer ones. */
const MOST_ROUNDS = 3

/** So long, or a few round trips, a pulse waits for the outcome of a claim that collects votes. */
const DECIDED_MS = 50

/** One beat of the engine, on the members. */
interface ClaimBeat {
  readonly beat: Beat
  readonly claim: QuorumClaim
  /** The fences that it asks for; null: none, or it has them. */
  wanted: { first: number; count: number } | null
  /** Those that a majority has reserved. */
  block: number | undefined
  /** Whose answers are needed: those of a majority for a hold, of the usher for a place in line. */
  readonly needs: 'majority' | 'usher' | 'nobody'
  /** The usher when it was sent: an answer may move the claim to another one. */
  readonly usher: Member | null
}

/** What one member is told in one call. */
interface MemberBeat {
  readonly of: ClaimBeat
  readonly vote: Vote
  readonly beat: Beat
}

/** Renews claims on all members that have them: one call to each member. */
export async function pulseClaims(
  env: Env,
  members: Members,
  claims: ReadonlyMap<string, QuorumClaim>,
  beats: readonly Beat[],
): Promise<BeatReply[]> {
  const sentAt = env.now()
  const claimBeats = beats.map((beat) => newClaimBeat(beat, claims.get(beat.id)))
  let round = claimBeats.filter((each) => each !== null)
  // A hold that is left to lapse is not asked for again.
  for (const { claim, beat } of round) if (claim.canJoin && beat.leaseMs > 0) joinMissing(claim)
  const answered = new Set<Member>()
  for (let count = 1; round.length > 0; count++) {
    await send(env, members, round, answered)
    for (const each of round) takeFences(each, env.now())
    round = count < MOST_ROUNDS ? round.filter(({ wanted }) => wanted !== null) : []
  }
  // The answer is worth more than an early one: a claim that was just promoted is held in a moment.
  const decidedMs = members.roundTripsMs(DECIDED_MS)
  await Promise.all(
    claimBeats.map((each) => each?.claim.isUndecided && each.claim.answer.decided(env, decidedMs)),
  )
  const isRenewedOf = (each: ClaimBeat | null): boolean => each === null || isRenewed(each, answered, members)
  if (!claimBeats.some(isRenewedOf)) throw members.unavailable()
  return claimBeats.map((each) =>
    each && !isRenewedOf(each) ? notRenewed(each.claim) : replyTo(each, claims, sentAt),
  )
}

function newClaimBeat(beat: Beat, claim: QuorumClaim | undefined): ClaimBeat | null {
  if (!claim || claim.phase === 'over') return null
  if (beat.permits !== undefined) claim.isShrunk = true
  const wanted =
    claim.phase === 'held' && beat.block !== undefined
      ? { first: claim.nextFences(beat.block), count: beat.block }
      : null
  // Of a claim that collects its votes the outcome is waited for.
  const needs = claim.phase === 'held' ? 'majority' : claim.phase === 'line' ? 'usher' : 'nobody'
  return { beat, claim, wanted, block: undefined, needs, usher: claim.usher }
}

/** One call to each member that has one of the claims. */
async function send(
  env: Env,
  members: Members,
  round: readonly ClaimBeat[],
  answered: Set<Member>,
): Promise<void> {
  const byMember = new Map<Member, MemberBeat[]>()
  for (const of of round)
    for (const vote of of.claim.votes) {
      if (!hasClaim(vote) || !vote.member.isUp) continue
      const list = byMember.get(vote.member) ?? []
      byMember.set(vote.member, list)
      const beat = beatTo(of, vote)
      if (beat.fences) vote.raising(beat.fences.first)
      list.push({ of, vote, beat })
    }
  const startedAt = env.now()
  await new Promise<void>((resolve) => {
    let pending = byMember.size
    let isGrace = false
    const settle = (): void => {
      pending--
      const isEnough = answered.size > 0 && round.every((each) => isRenewed(each, answered, members))
      if (pending === 0) resolve()
      else if (isEnough && !isGrace) {
        isGrace = true
        env.timer(members.graceMs(startedAt), resolve, { keepAlive: true })
      }
    }
    if (pending === 0) resolve()
    for (const [member, list] of byMember)
      tell(env, member, list).then(() => {
        answered.add(member)
        settle()
      }, settle)
  })
}

/** Whether those have answered whose answers are needed. What is over needs none. */
function isRenewed(
  { claim, needs, usher }: ClaimBeat,
  answered: ReadonlySet<Member>,
  { majority }: Members,
): boolean {
  if (needs === 'nobody' || claim.phase === 'over') return true
  if (needs === 'usher') return usher !== null && answered.has(usher)
  let count = 0
  for (const { state, member } of claim.votes) if (state === 'granted' && answered.has(member)) count++
  return count >= majority
}

function hasClaim({ state }: Vote): boolean {
  return state === 'granted' || state === 'waiting'
}

function beatTo({ beat, claim, wanted }: ClaimBeat, vote: Vote): Beat {
  const { block: _block, ...rest } = beat
  const own = { ...rest, id: vote.nonce }
  return wanted && vote.state === 'granted' && claim.phase === 'held'
    ? { ...own, fences: { ...wanted } }
    : own
}

async function tell(env: Env, member: Member, list: readonly MemberBeat[]): Promise<void> {
  const sentAt = env.now()
  const nonces = list.map(({ vote }) => vote.nonce)
  const apply = (replies: readonly BeatReply[]): void => {
    list.forEach(({ of, vote }, index) => {
      const reply = replies[index]
      if (!reply || vote.nonce !== nonces[index]) return
      of.claim.voting.onBeat(vote, reply, sentAt)
    })
  }
  const beats = list.map(({ beat }) => beat)
  // What a late answer has renewed counts as well.
  apply(await member.call((connection) => connection.pulse(beats), apply))
}

/** Whether a majority has reserved the fences; otherwise higher ones are asked for next. */
function takeFences(each: ClaimBeat, now: number): void {
  const { wanted, claim } = each
  if (!wanted || claim.phase !== 'held') return
  if (claim.votes.agreeOn(wanted.first, now)) {
    each.block = wanted.first
    each.wanted = null
    claim.endFence = wanted.first + wanted.count
  } else {
    const newest = claim.votes.granted.reduce(
      (most, { fence, newest }) => Math.max(most, fence, newest),
      wanted.first,
    )
    wanted.first = claim.nextFences(wanted.count, newest + FENCE_STEP)
  }
}

/** Says that nothing is known, so that the engine asks again soon. */
function notRenewed(claim: QuorumClaim): BeatReply {
  return { ...claim.waitingReply(), grantsAbove: 0 }
}

/** Members that never had the claim, or lost it, are asked again while the others hold it. */
function joinMissing(claim: QuorumClaim): void {
  for (const vote of claim.votes)
    if (vote.member.isUp && !hasClaim(vote) && vote.state !== 'asked') claim.voting.join(vote)
}

function replyTo(
  each: ClaimBeat | null,
  claims: ReadonlyMap<string, QuorumClaim>,
  sentAt: number,
): BeatReply {
  if (!each) return { status: 'gone' }
  const { claim, block, beat } = each
  if (claims.get(beat.id) !== claim) return { status: 'gone' }
  if (claim.phase !== 'held') return claim.waitingReply()
  const held: Held = claim.heldReply(sentAt)
  return block === undefined ? held : { ...held, block }
}
