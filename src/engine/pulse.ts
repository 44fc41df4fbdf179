import { Agenda } from '../base/agenda.js'
import { backoffMs } from '../base/backoff.js'
import { isWatched, pulseChannel, trace } from '../base/channels.js'
import type { PulseContext } from '../base/events.js'
import { Heard } from '../calls/calls.js'
import type { Beat, BeatReply, Waiting } from '../contract/store.js'
import type { Engine } from './engine.js'
import { warnOfForgotten } from './forgotten.js'
import type { Lease } from './lease.js'
import { Window } from './window.js'

/**
 * A pulse is due after this part of the time that the last one bought, so that two may fail before
 * anything is lost.
 */
const DUE_AFTER = 1 / 3
/** Leases that are due within this part of their interval travel along: many leases, few calls. */
const TRAVEL_ALONG = 0.25
/**
 * While a line moves, the next waiter that hears no pushes asks so many times as often as at rest.
 */
const MOVING = 20
/** While a store has more to do than it is sent, this often is enough to look for more. */
const LOOK_AGAIN_MS = 50
const FIRST_RETRY_MS = 25
const LONGEST_RETRY_MS = 1000

/**
 * The one loop by which a client keeps all its holds and places in line alive, and learns what
 * became of them. It also ends leases whose validity has run out. Calls are sent as fast as the
 * store answers them, the most urgent leases first. An answer that comes after its call was given
 * up, and repeated, still tells what it renewed.
 */
export class Pulse {
  readonly #engine: Engine
  readonly #agenda: Agenda
  readonly #window: Window | null
  /** Due, and not sent yet: the store has enough to do. */
  #backlog: Lease[] = []
  #failures = 0
  readonly #heard = new Heard()

  constructor(engine: Engine) {
    this.#engine = engine
    this.#agenda = new Agenda(engine.env, () => this.#lookAround())
    // Where each lease travels alone, it may be on another server than the others, and must not
    // wait for them.
    this.#window = engine.capabilities.maxBeats > 1 ? new Window() : null
  }

  /** After the store has answered for a lease: when to speak of it next. */
  plan(lease: Lease, reply?: Waiting): void {
    const { env } = this.#engine
    const { heartbeat } = lease
    const now = env.now()
    // An extended lease that is not renewed need not be asked about more often than it lasts.
    const aliveMs = lease.isLeftToLapse ? Math.max(lease.aliveMs, lease.validUntil - now) : lease.aliveMs
    const intervalMs = aliveMs * DUE_AFTER * (0.9 + env.random() * 0.1)
    heartbeat.dueAt = lease.acknowledgedAt + intervalMs
    heartbeat.intervalMs = intervalMs
    if (reply) {
      const freeInMs = reply.isNext ? (reply.freeInMs ?? Infinity) : Infinity
      const askMs = Math.max(1, Math.min(freeInMs, this.#askInMs(lease, reply)))
      heartbeat.dueAt = Math.min(heartbeat.dueAt, now + askMs)
      heartbeat.intervalMs = Math.min(intervalMs, askMs)
    }
    if (heartbeat.isHurried) heartbeat.dueAt = now
    this.#agenda.by(nextMoment(lease))
  }

  /**
   * Where pushes are not heard: when to ask for a waiting lease. The interval grows with the place
   * in line, and shrinks only while the line moves, which bounds the total load.
   */
  #askInMs(lease: Lease, { isNext, ahead }: Waiting): number {
    const { env, capabilities } = this.#engine
    const everyMs = capabilities.askNextEveryMs
    if (everyMs === null) return Infinity
    if (ahead === undefined) return isNext ? everyMs : Infinity
    const restedMs = lease.heartbeat.noteAhead(ahead, env.now())
    const movingMs = (everyMs / MOVING) * (ahead + 1)
    const atRestMs = everyMs * (1 + ahead / 2)
    return Math.min(Math.max(restedMs / 4, movingMs), atRestMs) * (0.9 + env.random() * 0.1)
  }

  /** Speaks of this lease as soon as possible. */
  hurry(lease: Lease): void {
    const { heartbeat } = lease
    heartbeat.dueAt = this.#engine.env.now()
    // What is on its way may have been answered before the news that makes us hurry.
    if (heartbeat.isSent) heartbeat.isHurried = true
    else void this.#send([lease], null)
  }

  hurryAll(): void {
    const now = this.#engine.env.now()
    for (const { heartbeat, phase } of this.#engine.leases.values()) {
      heartbeat.dueAt = Math.min(heartbeat.dueAt, now)
      // Also where the first answer is under way: it may say "waiting", from before a grant whose
      // push was lost.
      heartbeat.isHurried ||= heartbeat.isSent || phase === 'asking'
    }
    this.#lookAround()
  }

  /**
   * Holds of these resources have ended here without a release: the first waiter of each asks when
   * the store takes them for over.
   */
  hurryNext(resources: Set<string>): void {
    const now = this.#engine.env.now()
    for (const { resource, phase, heartbeat } of this.#engine.leases.values()) {
      if ((phase !== 'waiting' && phase !== 'confirming') || !resources.delete(resource)) continue
      heartbeat.dueAt = Math.min(heartbeat.dueAt, now)
      heartbeat.isHurried ||= heartbeat.isSent
    }
    this.#lookAround()
  }

  /** Speaks of this lease at that moment, or at once if there has been news meanwhile. */
  again(lease: Lease, at: number): void {
    const { heartbeat } = lease
    heartbeat.dueAt = heartbeat.isHurried ? this.#engine.env.now() : at
    this.#agenda.by(nextMoment(lease))
  }

  stop(): void {
    this.#agenda.stop()
  }

  #lookAround(): void {
    const now = this.#engine.env.now()
    const along: Lease[] = []
    let isAnyDue = false
    for (const lease of this.#engine.leases.values()) {
      if (lease.phase === 'held' && now >= lease.validUntil) this.#engine.expire(lease)
      this.#endSilence(lease, now)
      if (!canBeat(lease) || lease.heartbeat.dueAt > now + lease.heartbeat.intervalMs * TRAVEL_ALONG) continue
      // Also where it only travels along: among many holds, one is seldom the first that is due.
      if (lease.phase === 'held') warnOfForgotten(lease)
      if (lease.isForgotten) continue
      along.push(lease)
      isAnyDue ||= lease.heartbeat.dueAt <= now
    }
    if (isAnyDue || this.#backlog.length > 0) {
      if (along.length > this.#engine.capabilities.maxBeats) along.sort((a, b) => urgency(a) - urgency(b))
      this.#backlog = along
      this.#sendNext()
    }
    this.#agenda.by(this.#nextLook(now))
  }

  /** Leases that wait to be sent leave as calls are answered, and are no reason to look around. */
  #nextLook(now: number): number {
    const isBehind = this.#backlog.length > 0
    let [end, due] = [Infinity, Infinity]
    for (const lease of this.#engine.leases.values()) {
      if (lease.phase === 'held') end = Math.min(end, lease.validUntil)
      end = Math.min(end, this.#silenceEndsAt(lease))
      if (canBeat(lease) && !(isBehind && lease.heartbeat.dueAt <= now))
        due = Math.min(due, lease.heartbeat.dueAt)
    }
    if (!isBehind) return Math.min(end, due)
    return Math.min(end, Math.max(Math.min(due, this.#goesAheadAt()), now + LOOK_AGAIN_MS))
  }

  #sendNext(): void {
    const { maxBeats } = this.#engine.capabilities
    while (this.#backlog.length > 0 && this.#isOpen(this.#backlog.length >= maxBeats)) {
      const leases = this.#backlog.splice(0, maxBeats).filter(canBeat)
      if (leases.length > 0) void this.#send(leases, this.#window)
    }
  }

  #isOpen(isFull: boolean): boolean {
    return this.#window?.isOpen(isFull) !== false || this.#goesAheadAt() <= this.#engine.env.now()
  }

  /**
   * When the backlog no longer waits for the calls under way. They may hold longer leases, and be
   * given up too late for the backlog; where the leases are alike, they are given up before.
   */
  #goesAheadAt(): number {
    if (!this.#window) return -Infinity
    return this.#heard.silentFrom(this.#window.lastSentAt) + this.#patienceMs(this.#backlog) + LOOK_AGAIN_MS
  }

  /** One call. Never rejects: a failure is "unknown", which neither extends nor ends anything. */
  async #send(leases: readonly Lease[], window: Window | null): Promise<void> {
    const { env, calls, connection } = this.#engine
    const beats = leases.map((lease) => lease.beat())
    for (const lease of leases) {
      lease.heartbeat.isSent = true
      lease.heartbeat.isHurried = false
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
      const calling = (): Promise<BeatReply[]> => calls.within(this.#patienceMs(leases), call, this.#heard)
      replies = await (isWatched(pulseChannel) ? this.#watched(beats.length, calling) : calling())
    } catch (error) {
      isGivenUp = true
      failure = error
    }
    window?.over()
    const answers = replies
    if (answers)
      this.#finish(beats, (lease, index) => this.#apply(lease, beats[index], answers[index], sentAt))
    else this.#onSilence(beats, failure, this.#heard.silentFrom(sentAt))
    if (!window) return
    if (!answers) window.shrink(sentAt, env.now())
    const wasBehind = this.#backlog.length > 0
    this.#sendNext()
    // Others may have become due meanwhile.
    if (wasBehind && this.#backlog.length === 0) this.#lookAround()
  }

  #watched(beats: number, call: () => Promise<BeatReply[]>): BeatReply[] | Promise<BeatReply[]> {
    const { env, space, storeName: store } = this.#engine
    const sentAt = env.now()
    const context: PulseContext = { space, store, beats, durationMs: undefined }
    const end = (): void => {
      context.durationMs = env.now() - sentAt
    }
    return trace(pulseChannel, context, call, { onValue: end, onError: end })
  }

  #onSilence(beats: readonly Beat[], error: unknown, since: number): void {
    this.#failures++
    this.#finish(beats, (lease) => this.#unanswered(lease, error, since))
    // The store is silent for leases that wait to be sent as well.
    for (const lease of this.#backlog) this.#noteSilence(lease, error, since)
  }

  #finish(beats: readonly Beat[], each: (lease: Lease, index: number) => void): void {
    beats.forEach(({ id }, index) => {
      const lease = this.#engine.leases.get(id)
      // Given back or lost meanwhile.
      if (!lease) return
      lease.heartbeat.isSent = false
      each(lease, index)
      this.#agenda.by(nextMoment(lease))
    })
  }

  /**
   * What a call has renewed although it was given up. A call that was sent after it may have been
   * answered before.
   */
  #applyLate(beats: readonly Beat[], replies: readonly BeatReply[], sentAt: number): void {
    beats.forEach((beat, index) => {
      const lease = this.#engine.leases.get(beat.id)
      const reply = replies[index]
      if (!lease || !reply || lease.acknowledgedAt >= sentAt) return
      this.#apply(lease, beat, withoutBlock(reply), sentAt)
    })
  }

  #apply(lease: Lease, beat: Beat | undefined, reply: BeatReply | undefined, sentAt: number): void {
    if (beat && reply) this.#engine.news.onBeatReply(lease, beat, reply, sentAt)
  }

  /** Short enough that a renewal whose reply got lost can be repeated before the hold is over. */
  #patienceMs(leases: readonly Lease[]): number {
    const shortest = leases.reduce((least, lease) => Math.min(least, lease.aliveMs), Infinity)
    return Math.min(this.#engine.calls.oneCallMs, Math.max(20, shortest / 4))
  }

  #noteSilence(lease: Lease, error: unknown, since: number): void {
    lease.heartbeat.unanswered(since, error)
    this.#endSilence(lease, this.#engine.env.now())
  }

  #unanswered(lease: Lease, error: unknown, since: number): void {
    const { env } = this.#engine
    this.#noteSilence(lease, error, since)
    if (!canBeat(lease)) return
    lease.heartbeat.dueAt =
      env.now() +
      backoffMs(this.#failures, env.random(), FIRST_RETRY_MS, Math.min(LONGEST_RETRY_MS, lease.aliveMs / 8))
    this.#agenda.by(Math.min(nextMoment(lease), this.#silenceEndsAt(lease)))
  }

  /**
   * Callers who wait for the store are told when it has been silent for too long, also while one
   * more request is under way.
   */
  #endSilence(lease: Lease, now: number): void {
    if (now < this.#silenceEndsAt(lease)) return
    const { heartbeat, successors } = lease
    successors.onFailure(lease, this.#engine.unavailable(lease, heartbeat.silentBecause))
    // A caller that comes later, beside a reader that still holds, has the whole time again.
    heartbeat.silentSince = null
  }

  #silenceEndsAt(lease: Lease): number {
    const { silentSince } = lease.heartbeat
    if (silentSince === null) return Infinity
    // Requests may wait for a held lease as well: readers that want to join, and the next one if
    // there is no fence left.
    const isAwaited = lease.phase !== 'asking' && (!lease.isServing || lease.isShared)
    return isAwaited ? silentSince + this.#engine.calls.storeTimeoutMs : Infinity
  }
}

function canBeat(lease: Lease): boolean {
  const { phase, heartbeat, isForgotten } = lease
  return !heartbeat.isSent && !isForgotten && phase !== 'asking' && phase !== 'over'
}

/**
 * When something has to be done about a lease. One whose beat is on its way comes back with the
 * reply.
 */
function nextMoment(lease: Lease): number {
  const dueAt = canBeat(lease) ? lease.heartbeat.dueAt : Infinity
  return lease.phase === 'held' ? Math.min(dueAt, lease.validUntil) : dueAt
}

/** When it should be on its way at the latest, if others are due as well. */
function urgency(lease: Lease): number {
  return lease.heartbeat.dueAt + lease.aliveMs * DUE_AFTER
}

/**
 * A block that comes late may lie before one that was given out since: its fences are left unused.
 */
function withoutBlock(reply: BeatReply): BeatReply {
  if (reply.status !== 'held') return reply
  const { block: _block, ...rest } = reply
  return rest
}
