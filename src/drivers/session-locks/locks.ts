import type { Cancel, Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { type Held, Line, type Waiter } from './line.js'
import type { Lock, LockServer, LockSession } from './server.js'

/** A server that is out of reach is tried again for so long. */
const FAIL_AFTER_MS = 10_000
/** Longest stay in the server's queue: what is between here and there drops connections that are silent for minutes. */
const QUEUE_MS = 60_000
/** The same while other names wait for one of our sessions to queue for them. */
const CROWDED_QUEUE_MS = 5000
/** At most so many sessions queue or hold what they have queued for; with the home session never more than half of the pool. */
const MOST_QUEUES = 3
/** A wait that ends sooner without the lock was no wait: the server or the client ends them all. */
const SHORTEST_QUEUE_MS = 100
/** After a session could not be opened. */
const REOPEN_MS = 1000
/** A healthy server answers a small question within this time, also under load and from far away. */
const HEALTHY_MS = 2000
/** So many names that nobody wants at the moment are remembered as busy. */
const MOST_REMEMBERED = 100

/** A session that waits in the server's queue for one lock, and then holds that one only. */
interface Queue<S extends LockSession> {
  /** null while it is being opened. */
  session: S | null
  /** What it waits for, or holds. */
  line: Line<S> | null
  /** Under way, or answered. */
  cancelling: Promise<void> | null
}

/**
 * All session locks of one pool. The home session takes and holds whatever is free when it is asked for, and never waits inside the server, so it can always answer.
 * What is busy is waited for in the server's own queue by sessions that hold nothing else; where the pool has none to spare, home asks again and again.
 */
export class SessionLocks<S extends LockSession> {
  readonly #server: LockServer<S>
  readonly #env: Env
  readonly #lines = new Map<string, Line<S>>()
  readonly #queues = new Set<Queue<S>>()
  /** When locks were found busy that nobody wants at the moment. */
  readonly #busyAt = new Map<string, number>()
  #home: Promise<S> | undefined
  #isTrying = false
  /** Questions for a sign of life that are under way. */
  #probes = 0
  #reopenAt = 0
  #cancelTimer: Cancel = () => {}

  constructor(server: LockServer<S>, env: Env) {
    this.#server = server
    this.#env = env
  }

  join(lock: Lock, waiter: Waiter): void {
    const line = this.#lines.get(lock.key) ?? new Line<S>(lock, this.#busyAt.get(lock.key) ?? -Infinity)
    if (waiter.isBrief && !line.isDeserted) return waiter.refuse()
    this.#lines.set(lock.key, line)
    line.waiters.push(waiter)
    this.#goOn()
  }

  leave({ key }: Lock, waiter: Waiter): void {
    this.#lines.get(key)?.remove(waiter)
    this.#goOn()
  }

  /** The wait is over. That the lock is taken is said only if the server answers, or this process has it. */
  async giveUp(lock: Lock, waiter: Waiter): Promise<void> {
    const line = this.#lines.get(lock.key)
    const isOurs = line?.held
    line?.remove(waiter)
    const failure = line?.failure?.error ?? (isOurs ? null : await this.#probe())
    this.#goOn()
    if (failure) waiter.fail(failure)
    else waiter.refuse()
  }

  /** How the server fails to answer; null: it answers. */
  #probe(): Promise<HoldfastError | null> {
    this.#probes++
    const probing = this.#openHome().then((home) => this.#server.probe(home))
    // Starts what the end of the wait leads to, such as a cancel, without waiting for the answer.
    this.#goOn()
    return new Promise<unknown>((resolve, reject) => {
      const onSilence = (): void => reject(new Error(`no answer within ${HEALTHY_MS} ms`))
      const cancel = this.#env.timer(HEALTHY_MS, onSilence, { keepAlive: true })
      probing.finally(cancel).then(resolve, reject)
    })
      .then(
        () => null,
        (error) => this.#server.explain(error),
      )
      .finally(() => this.#probes--)
  }

  /** Something has changed: asks now or later, queues, and gives back the sessions that have nothing to do. */
  #goOn(): void {
    this.#cancelTimer()
    for (const line of this.#lines.values()) if (line.isDeserted) this.#forget(line)
    this.#cancelDeserted()
    this.#queueForBusy()
    if (this.#lines.size === 0) return this.#probes === 0 ? this.#closeHome() : undefined
    if (!this.#isTrying) this.#askFor([...this.#lines.values()].filter((line) => line.isWanted))
  }

  #forget({ key, busyAt }: Line<S>): void {
    this.#lines.delete(key)
    this.#busyAt.delete(key)
    if (busyAt === -Infinity) return
    this.#busyAt.set(key, busyAt)
    const [oldest] = this.#busyAt.keys()
    if (this.#busyAt.size > MOST_REMEMBERED && oldest !== undefined) this.#busyAt.delete(oldest)
  }

  /** Nobody here wants any more what these wait for. */
  #cancelDeserted(): void {
    for (const queue of this.#queues) {
      const { session, line } = queue
      if (!session || !line?.isAsked || line.waiters.length > 0 || queue.cancelling) continue
      queue.cancelling = this.#openHome()
        .then((home) => this.#server.cancel(session, line, home))
        // Then it ends by itself, and gives back what it gets.
        .catch(() => {})
    }
  }

  /** The lines that have queued least lately get the sessions that there are, and one more is opened if need be; until then they are polled. */
  #queueForBusy(): void {
    const now = this.#env.now()
    const busy = [...this.#lines.values()].filter((line) => line.mayQueue(now))
    const lines = busy.filter((line) => line.isWanted).toSorted((a, b) => a.queuedAt - b.queuedAt)
    const queues = [...this.#queues]
    const most = queuesIn(this.#server.poolSize())
    const isCrowded = lines.length > most - queues.filter(({ line }) => line).length
    for (const queue of queues) {
      const { session } = queue
      if (!session || queue.line) continue
      const line = lines.shift()
      if (line) void this.#wait(queue, session, line, isCrowded)
      else if (busy.every((each) => queues.some((other) => other.line === each)))
        this.#closeQueue(queue, session)
    }
    const isOpening = queues.some(({ session }) => session === null)
    const mayOpen = !isOpening && queues.length < most && this.#reopenAt <= now
    if (lines[0] && mayOpen) void this.#openQueue(lines[0])
  }

  #askFor(wanted: readonly Line<S>[]): void {
    if (wanted.length === 0) return
    const now = this.#env.now()
    const due = wanted.filter((line) => line.dueAt <= now)
    if (due.length > 0) return void this.#tryAll(due)
    const dueAt = Math.min(...wanted.map((line) => line.dueAt))
    this.#cancelTimer = this.#env.timer(dueAt - now, () => this.#goOn(), { keepAlive: true })
  }

  /** Never rejects. */
  async #tryAll(due: readonly Line<S>[]): Promise<void> {
    this.#isTrying = true
    let home: S | undefined
    for (const line of due) line.isAsked = true
    try {
      home = await this.#openHome()
      const fences = await this.#server.tryAll(home, due)
      for (const line of due) {
        const fence = fences.get(line.key)
        line.failure = null
        if (fence === undefined) line.refuse(this.#env)
        else await this.#enter(line, home, fence)
      }
    } catch (error) {
      for (const line of due) this.#fail(line, error, home)
    }
    for (const line of due) line.isAsked = false
    this.#isTrying = false
    this.#goOn()
  }

  /** Never rejects. */
  async #wait(queue: Queue<S>, session: S, line: Line<S>, isCrowded: boolean): Promise<void> {
    queue.line = line
    queue.cancelling = null
    line.isAsked = true
    let isHeld = false
    const since = this.#env.now()
    try {
      const fence = await this.#server.wait(session, line, isCrowded ? CROWDED_QUEUE_MS : QUEUE_MS)
      // It must not meet the next statement of this session.
      await queue.cancelling
      line.failure = null
      if (fence === null) this.#onNoGrant(line, since, queue.cancelling !== null)
      else isHeld = await this.#enter(line, session, fence)
    } catch (error) {
      await queue.cancelling
      if (!queue.cancelling) this.#fail(line, error, session)
    }
    if (!isHeld) queue.line = null
    line.isAsked = false
    line.queuedAt = this.#env.now()
    this.#goOn()
  }

  /** Queues again, unless that would be a loop without a pause: then the lock is polled. */
  #onNoGrant(line: Line<S>, since: number, isCancelled: boolean): void {
    const now = this.#env.now()
    const isTooShort = !isCancelled && now - since < SHORTEST_QUEUE_MS
    line.busyAt = isTooShort ? -Infinity : now
    if (isTooShort) line.postpone(this.#env)
  }

  /** Gives the lock to the first that waits, or back. Never rejects. */
  async #enter(line: Line<S>, session: S, fence: number): Promise<boolean> {
    // Lost again before anybody has heard of it.
    if (session.isOver) return false
    const waiter = line.waiters.shift()
    if (!waiter) {
      await this.#unlock(session, line)
      return false
    }
    const free = (): Promise<boolean> => this.#release(line, held)
    const held: Held<S> = { session, hold: waiter.enter(fence, free) }
    line.held = held
    return true
  }

  async #release(line: Line<S>, held: Held<S>): Promise<boolean> {
    if (line.held !== held) return false
    const wasHeld = await this.#unlock(held.session, line)
    for (const queue of this.#queues) if (queue.session === held.session) queue.line = null
    // After a loss it may be another one's by now.
    if (line.held === held) this.#open(line)
    this.#goOn()
    return wasHeld
  }

  /** A session that may still have what nobody holds is of no use. */
  async #unlock(session: S, line: Line<S>): Promise<boolean> {
    try {
      return await this.#server.unlock(session, line.key)
    } catch (error) {
      session.destroy(this.#server.explain(error))
      return false
    }
  }

  /** Where nobody here queues, others that poll get a moment to come in before our next one. */
  #open(line: Line<S>): void {
    line.open()
    if (queuesIn(this.#server.poolSize()) === 0) line.postpone(this.#env)
  }

  /** What may pass is tried again for a while, for those who have time. */
  #fail(line: Line<S>, cause: unknown, session: S | undefined): void {
    const now = this.#env.now()
    const since = line.failure?.since ?? now
    const error = this.#server.explain(cause)
    const isTriedAgain = this.#server.mayPass(cause, session) && now - since < FAIL_AFTER_MS
    line.failure = isTriedAgain ? { since, error } : null
    line.busyAt = -Infinity
    line.postpone(this.#env)
    for (const waiter of [...line.waiters]) {
      if (isTriedAgain && !waiter.isBrief) continue
      line.remove(waiter)
      waiter.fail(error)
    }
  }

  #openHome(): Promise<S> {
    if (this.#home) return this.#home
    const opening = this.#server.open((reason) => {
      this.#forgetHome(opening)
      void opening.then((session) => this.#onEnd(session, reason))
    })
    this.#home = opening
    opening.catch(() => this.#forgetHome(opening))
    return opening
  }

  #forgetHome(home: Promise<S>): void {
    if (this.#home === home) this.#home = undefined
  }

  #closeHome(): void {
    const home = this.#home
    this.#home = undefined
    home?.then((session) => session.close()).catch(() => {})
  }

  async #openQueue(line: Line<S>): Promise<void> {
    const queue: Queue<S> = { session: null, line: null, cancelling: null }
    // An idle connection is there before the first poll.
    if (line.dueAt <= this.#env.now()) line.postpone(this.#env)
    this.#queues.add(queue)
    try {
      const opening = this.#server.open((reason) => {
        this.#queues.delete(queue)
        void opening.then((session) => this.#onEnd(session, reason))
      })
      queue.session = await opening
    } catch {
      // Those that wait are polled meanwhile, and hear of it there.
      this.#queues.delete(queue)
      this.#reopenAt = this.#env.now() + REOPEN_MS
    }
    this.#goOn()
  }

  #closeQueue(queue: Queue<S>, session: S): void {
    this.#queues.delete(queue)
    session.close()
  }

  /** With a session go all its locks. */
  #onEnd(session: S, reason: Error): void {
    for (const line of this.#lines.values()) {
      const { held } = line
      if (held?.session !== session) continue
      this.#open(line)
      held.hold.lose(reason)
    }
    this.#goOn()
  }
}

/** How many of its sessions may queue: with home at most half of the connections. */
function queuesIn(poolSize: number): number {
  return Math.max(0, Math.min(MOST_QUEUES, Math.floor(poolSize / 2) - 1))
}
