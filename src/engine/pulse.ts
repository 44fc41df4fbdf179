import { backoffMs } from '../base/backoff.js'
import type { Env } from '../base/env.js'
import type { Beat, BeatReply, Capabilities, Connection, Gone, Held, Waiting } from '../contract/store.js'
import { Agenda } from './agenda.js'
import { type Calls, Heard } from './calls.js'
import { type Claim, driftMs } from './claim.js'
import { tellOfForgotten } from './forgotten.js'
import { Window } from './window.js'

/** A pulse is due after this part of the time that the last one bought, so that two may fail before anything is lost. */
const DUE_AFTER = 1 / 3
/** Claims that are due within this part of their interval travel along: many claims, few calls. */
const TRAVEL_ALONG = 0.25
/** While a line moves, the next one that cannot hear of its grant asks so many times as often as at rest. */
const MOVING = 20
/** Where a session's time is nearly over, or a hold's cap is near, it is not asked for more and more often. */
const LEAST_TERM_MS = 100
/** While a store has more to do than it is sent, this often is enough to look for more. */
const LOOK_AGAIN_MS = 50
const FIRST_RETRY_MS = 25
const LONGEST_RETRY_MS = 1000

export interface PulseContext {
  readonly env: Env
  readonly calls: Calls
  readonly connection: Connection
  readonly capabilities: Capabilities
  /** The client's claims. */
  claims(): Iterable<Claim>
  /** The one that stands for that id now. */
  claimOf(id: string): Claim | undefined
  /** Ends a hold whose validity has run out. */
  expire(claim: Claim): void
  /** Takes back what the store has of a claim that nobody wants. */
  withdraw(claim: Claim): void
}

/**
 * The one loop by which a client keeps all its holds and places alive, and learns what became of them. It also ends a hold
 * whose validity has run out. Calls are sent as fast as the store answers them, the most urgent claims first. An answer that comes
 * after its call was given up, and repeated, still tells what it renewed.
 */
export class Pulse {
  readonly #context: PulseContext
  readonly #agenda: Agenda
  readonly #window: Window | null
  /** Due, and not sent yet: the store has enough to do. */
  #backlog: Claim[] = []
  #failures = 0
  readonly #heard = new Heard()

  constructor(context: PulseContext) {
    this.#context = context
    this.#agenda = new Agenda(context.env, () => this.#lookAround())
    // Where each claim travels alone, it may be on another server than the others, and must not wait for them.
    this.#window = context.capabilities.maxBeats > 1 ? new Window() : null
  }

  /** After the store has answered for a claim: when to speak of it next. */
  plan(claim: Claim, reply?: Waiting): void {
    const { env } = this.#context
    if (reply) this.#noteTerm(claim, reply.presenceMs)
    const intervalMs = claim.aliveMs * DUE_AFTER * (0.9 + env.random() * 0.1)
    claim.dueAt = claim.acknowledgedAt + intervalMs
    claim.intervalMs = intervalMs
    if (reply) {
      const freeInMs = reply.isNext ? (reply.freeInMs ?? Infinity) : Infinity
      const askMs = Math.max(1, Math.min(freeInMs, this.#askInMs(claim, reply)))
      claim.dueAt = Math.min(claim.dueAt, env.now() + askMs)
      claim.intervalMs = Math.min(intervalMs, askMs)
    }
    if (claim.isHurried) claim.dueAt = env.now()
    this.#agenda.by(nextMoment(claim))
  }

  /**
   * Where pushes are not heard: when to ask for a claim that waits. Seldom by those far back, and often only while the line
   * moves, so that all waiters of a line together ask little more often than the first few of them.
   */
  #askInMs(claim: Claim, { isNext, ahead }: Waiting): number {
    const { env, capabilities } = this.#context
    const everyMs = capabilities.askNextEveryMs
    if (everyMs === null) return Infinity
    if (ahead === undefined) return isNext ? everyMs : Infinity
    const restedMs = claim.noteAhead(ahead, env.now())
    const movingMs = (everyMs / MOVING) * (ahead + 1)
    const atRestMs = everyMs * (1 + ahead / 2)
    return Math.min(Math.max(restedMs / 4, movingMs), atRestMs) * (0.9 + env.random() * 0.1)
  }

  /** Speaks of this claim as soon as possible. */
  hurry(claim: Claim): void {
    claim.dueAt = this.#context.env.now()
    // What is on its way may have been answered before the news that makes us hurry.
    if (claim.isBeating) claim.isHurried = true
    else void this.#send([claim], null)
  }

  hurryAll(): void {
    const now = this.#context.env.now()
    for (const claim of this.#context.claims()) {
      claim.dueAt = Math.min(claim.dueAt, now)
      // Also one whose first answer is under way: it may say that the claim waits, from before a grant whose push was lost.
      claim.isHurried ||= claim.isBeating || claim.phase === 'asking'
    }
    this.#lookAround()
  }

  /** Holds of these resources have ended here without a release: the first waiter of each asks when the store takes them for over. */
  hurryNext(resources: Set<string>): void {
    const now = this.#context.env.now()
    for (const claim of this.#context.claims()) {
      if (claim.phase !== 'waiting' || !resources.delete(claim.resource)) continue
      claim.dueAt = Math.min(claim.dueAt, now)
      claim.isHurried ||= claim.isBeating
    }
    this.#lookAround()
  }

  stop(): void {
    this.#agenda.stop()
  }

  #lookAround(): void {
    const now = this.#context.env.now()
    const along: Claim[] = []
    let isAnyDue = false
    for (const claim of this.#context.claims()) {
      if (claim.phase === 'held' && now >= claim.validUntil) this.#context.expire(claim)
      this.#endSilence(claim, now)
      if (!canBeat(claim) || claim.dueAt > now + claim.intervalMs * TRAVEL_ALONG) continue
      // Also where it only travels along: among many holds, one is seldom the first that is due.
      if (claim.phase === 'held') tellOfForgotten(claim)
      if (claim.isForgotten) continue
      along.push(claim)
      isAnyDue ||= claim.dueAt <= now
    }
    if (isAnyDue || this.#backlog.length > 0) {
      if (along.length > this.#context.capabilities.maxBeats) along.sort((a, b) => urgency(a) - urgency(b))
      this.#backlog = along
      this.#sendNext()
    }
    this.#agenda.by(this.#nextLook(now))
  }

  /** Claims that wait to be sent leave as calls are answered, and are no reason to look around. */
  #nextLook(now: number): number {
    const isBehind = this.#backlog.length > 0
    let [end, due] = [Infinity, Infinity]
    for (const claim of this.#context.claims()) {
      if (claim.phase === 'held') end = Math.min(end, claim.validUntil)
      end = Math.min(end, this.#silenceEndsAt(claim))
      if (canBeat(claim) && !(isBehind && claim.dueAt <= now)) due = Math.min(due, claim.dueAt)
    }
    if (!isBehind) return Math.min(end, due)
    return Math.min(end, Math.max(Math.min(due, this.#goesAheadAt()), now + LOOK_AGAIN_MS))
  }

  #sendNext(): void {
    const { maxBeats } = this.#context.capabilities
    while (this.#backlog.length > 0 && this.#isOpen(this.#backlog.length >= maxBeats)) {
      const claims = this.#backlog.splice(0, maxBeats).filter(canBeat)
      if (claims.length > 0) void this.#send(claims, this.#window)
    }
  }

  #isOpen(isFull: boolean): boolean {
    return this.#window?.isOpen(isFull) !== false || this.#goesAheadAt() <= this.#context.env.now()
  }

  /**
   * When the backlog no longer waits for the calls under way. They may hold longer leases, and be given up too late for
   * the backlog; where the leases are alike, they are given up before.
   */
  #goesAheadAt(): number {
    if (!this.#window) return -Infinity
    return this.#heard.silentFrom(this.#window.lastSentAt) + this.#patienceMs(this.#backlog) + LOOK_AGAIN_MS
  }

  /** One call. Never rejects: a failure is "unknown", which neither extends nor ends anything. */
  async #send(claims: readonly Claim[], window: Window | null): Promise<void> {
    const { env, calls, connection } = this.#context
    const beats = claims.map((claim) => claim.beat())
    for (const claim of claims) {
      claim.isBeating = true
      claim.isHurried = false
    }
    const sentAt = env.now()
    let isGivenUp = false
    const call = async (): Promise<BeatReply[]> => {
      const replies = await connection.pulse(beats)
      this.#failures = 0
      window?.answered(sentAt, env.now())
      if (isGivenUp) this.#applyLate(beats, replies, sentAt)
      return replies
    }
    window?.sent(sentAt)
    let replies: BeatReply[] | undefined
    let failure: unknown
    try {
      replies = await calls.within(this.#patienceMs(claims), call, this.#heard)
    } catch (error) {
      isGivenUp = true
      failure = error
    }
    window?.over()
    const answers = replies
    if (answers)
      this.#finish(beats, (claim, index) => this.#apply(claim, beats[index], answers[index], sentAt))
    else this.#onSilence(beats, failure, this.#heard.silentFrom(sentAt))
    if (!window) return
    if (!answers) window.shrink(sentAt, env.now())
    const wasBehind = this.#backlog.length > 0
    this.#sendNext()
    // Others may have become due meanwhile.
    if (wasBehind && this.#backlog.length === 0) this.#lookAround()
  }

  #onSilence(beats: readonly Beat[], error: unknown, since: number): void {
    this.#failures++
    this.#finish(beats, (claim) => this.#unanswered(claim, error, since))
    // The store is silent for claims that wait to be sent as well.
    for (const claim of this.#backlog) this.#noteSilence(claim, error, since)
  }

  #finish(beats: readonly Beat[], each: (claim: Claim, index: number) => void): void {
    beats.forEach(({ id }, index) => {
      // It may have been passed on meanwhile: the answer is for whoever stands for it now.
      const claim = this.#context.claimOf(id)
      // It was given back or lost, or is asked for anew under another id: this says nothing about that.
      if (!claim) return
      claim.isBeating = false
      each(claim, index)
      this.#agenda.by(nextMoment(claim))
    })
  }

  /** What a call has renewed although it was given up. A call that was sent after it may have been answered before. */
  #applyLate(beats: readonly Beat[], replies: readonly BeatReply[], sentAt: number): void {
    beats.forEach((beat, index) => {
      const claim = this.#context.claimOf(beat.id)
      const reply = replies[index]
      if (!claim || !reply || claim.acknowledgedAt >= sentAt) return
      this.#apply(claim, beat, withoutBlock(reply), sentAt)
    })
  }

  /** Short enough that a renewal whose reply got lost can be repeated before the hold is over. */
  #patienceMs(claims: readonly Claim[]): number {
    const shortest = claims.reduce((least, claim) => Math.min(least, claim.aliveMs), Infinity)
    return Math.min(this.#context.calls.oneCallMs, Math.max(20, shortest / 4))
  }

  #apply(claim: Claim, beat: Beat | undefined, reply: BeatReply | undefined, sentAt: number): void {
    // An answer for an earlier attempt, or one that arrives after the release, says nothing about the present.
    if (!beat || !reply || beat.id !== claim.id) return
    const isWaiting = claim.phase === 'waiting'
    if (!isWaiting && claim.phase !== 'held') return
    claim.silentSince = null
    if (reply.status === 'held') this.#applyHeld(claim, beat, reply, sentAt)
    else if (isWaiting) this.#applyToWaiter(claim, reply, sentAt)
    else this.#applyToHolder(claim, reply)
  }

  #applyHeld(claim: Claim, beat: Beat, reply: Held, sentAt: number): void {
    if (claim.phase === 'held' && claim.grant !== reply.fence) return this.#takenOver(claim)
    claim.baton?.answered(reply.isWanted, sentAt)
    if (claim.hasOldPlace) claim.takeOldGrant(reply.fence, this.#context.env.now())
    // This was asked before it was passed on: nobody has asked for the fence of the one who has it now.
    if (claim.needsFences && (reply.block === undefined || claim.isHurried))
      return this.#again(claim, this.#context.env.now())
    if (reply.block !== undefined) claim.baton?.refill(reply.block, beat.block ?? 1)
    claim.acknowledgedAt = Math.max(claim.acknowledgedAt, sentAt)
    this.held(claim, reply.fence, sentAt + reply.leaseMs - driftMs(reply.leaseMs))
  }

  #applyToWaiter(claim: Claim, reply: Waiting | Gone, sentAt: number): void {
    if (reply.status === 'gone') return claim.listener.onGone()
    claim.keptPlace(sentAt, reply)
    this.plan(claim, reply)
  }

  #applyToHolder(claim: Claim, reply: Waiting | Gone): void {
    if (reply.status === 'gone')
      return claim.lose('the store no longer has it; it lapsed, or was broken or taken over')
    if (reply.grantsAbove >= claim.grant) return this.#takenOver(claim)
    // This answer was overtaken by the push of the grant: ask again, a little later.
    this.#again(claim, this.#context.env.now() + claim.aliveMs / 10)
  }

  /** The hold has lapsed, and a request for it that was long under way has put the claim in line again: nobody wants that one. */
  #takenOver(claim: Claim): void {
    claim.lose('it lapsed')
    this.#context.withdraw(claim)
  }

  /** The store says that the claim is held, and until when. */
  held(claim: Claim, fence: number, validUntil: number): void {
    const now = this.#context.env.now()
    this.#noteTerm(claim, validUntil - claim.acknowledgedAt)
    const wasHeld = claim.phase === 'held'
    if (wasHeld) claim.renew(validUntil)
    // The answer took longer than what it grants: ask again before anybody relies on it.
    // By the agenda, never at once: where answers come without a turn of the event loop, no timer would ever run.
    else if (validUntil <= now) return this.#again(claim, now + 1)
    else claim.hold(fence, validUntil, now)
    this.plan(claim)
    if (wasHeld) claim.listener.onRenewed()
  }

  #noteTerm(claim: Claim, termMs: number): void {
    if (!this.#context.capabilities.perHoldLease) claim.sessionMs = Math.max(termMs, LEAST_TERM_MS)
  }

  #again(claim: Claim, at: number): void {
    claim.dueAt = at
    this.#agenda.by(nextMoment(claim))
  }

  #noteSilence(claim: Claim, error: unknown, since: number): void {
    claim.silentSince ??= since
    claim.silentBecause = error
    this.#endSilence(claim, this.#context.env.now())
  }

  #unanswered(claim: Claim, error: unknown, since: number): void {
    const { env } = this.#context
    this.#noteSilence(claim, error, since)
    if (!canBeat(claim)) return
    claim.dueAt =
      env.now() +
      backoffMs(this.#failures, env.random(), FIRST_RETRY_MS, Math.min(LONGEST_RETRY_MS, claim.aliveMs / 8))
    this.#agenda.by(Math.min(nextMoment(claim), this.#silenceEndsAt(claim)))
  }

  /** Callers who wait for the store are told when it has been silent for too long, also while one more request is under way. */
  #endSilence(claim: Claim, now: number): void {
    if (now < this.#silenceEndsAt(claim)) return
    claim.listener.onUnavailable(claim.silentBecause)
    // A caller that comes later, beside a reader that still holds, has the whole time again.
    claim.silentSince = null
  }

  #silenceEndsAt(claim: Claim): number {
    // Readers that want to join a held claim wait for the store as well.
    if (claim.silentSince === null || (claim.phase !== 'waiting' && !claim.isShared)) return Infinity
    return claim.silentSince + this.#context.calls.storeTimeoutMs
  }
}

function canBeat(claim: Claim): boolean {
  return !claim.isBeating && !claim.isForgotten && (claim.phase === 'held' || claim.phase === 'waiting')
}

/** When something has to be done about a claim. One whose beat is on its way comes back with the reply. */
function nextMoment(claim: Claim): number {
  const dueAt = canBeat(claim) ? claim.dueAt : Infinity
  return claim.phase === 'held' ? Math.min(dueAt, claim.validUntil) : dueAt
}

/** When it should be on its way at the latest, if others are due as well. */
function urgency(claim: Claim): number {
  return claim.dueAt + claim.aliveMs * DUE_AFTER
}

/** A block that comes late may lie before one that was given out since: its fences are left unused. */
function withoutBlock(reply: BeatReply): BeatReply {
  if (reply.status !== 'held') return reply
  const { block: _block, ...rest } = reply
  return rest
}
