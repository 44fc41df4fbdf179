import { deferred } from '../../src/base/deferred.js'
import type { Hold } from '../../src/primitives/hold.js'
import { eventually, inTime, now, pass, settled } from '../../src/testing/conformance/checks.js'
import type { RecordedHold } from './recording.js'
import type { Actor, Stage } from './stage.js'

/** What provokes a bug. Without the bug it is an ordinary run that no judge finds fault with. */
export type Scenario = (stage: Stage) => Promise<void>

const LOCK = 'order:42'
/** Longer than any scenario, and not too long for a quorum. */
const LONG = { lease: '50s' } as const
/** To lapse within the scenario. A pause of the machine of a second must not hide the bug. */
const LAPSING = { lease: '1500ms' } as const
/** How often, and for how long, the patient waiter is given time. */
const TURNS = 20
const TURN_MS = 100
/** What the judges have to be told: less than the waiter waits. */
export const WAITER_PATIENCE_MS = 1000

const take = async (stage: Stage, { locks }: Actor, options: object = LONG): Promise<RecordedHold> => {
  const ask = (): Promise<Hold> => locks.mutex(LOCK).acquire(options)
  return (await stage.recording.acquire(LOCK, 'mutex', ask)) as RecordedHold
}

const tryTake = (stage: Stage, { locks }: Actor, options: object = LONG): Promise<RecordedHold | null> =>
  stage.recording.acquire(LOCK, 'mutex', () => locks.mutex(LOCK).tryAcquire(options))

/** Both look, and both leave: if both could trust their holds, they overlapped. */
async function compare(...holds: (RecordedHold | null)[]): Promise<void> {
  const there = holds.filter((hold) => hold !== null)
  for (const hold of there) hold.look()
  for (const hold of there) await hold.release()
}

function waiters(actor: Actor, count: number): Promise<void> {
  return eventually(`${count} waiters`, async () => {
    for await (const { waiters: waiting } of actor.locks.inspect({ prefix: LOCK }))
      if (waiting.length >= count) return true
    return false
  })
}

/** A release is under way for so long that its hold lapses and the next one begins. */
export const lateRelease: Scenario = async (stage) => {
  const [first, second, third] = [stage.actor(), stage.actor(), stage.actor()]
  const late = await take(stage, first, LAPSING)
  const [arrival, arrived] = [deferred<void>(), deferred<void>()]
  first.way.around = async (call, go) => {
    if (call.method !== 'release') return go()
    await arrival.promise
    return go().finally(() => arrived.resolve())
  }
  // Its client gives up waiting for the answer when the lease is over.
  const released = late.release()
  const next = await take(stage, second)
  arrival.resolve()
  await inTime('the late release', Promise.all([released, arrived.promise]))
  await compare(await tryTake(stage, third), next)
}

/** One holder after the other, each from another client; then nobody is left, and one more comes. */
export const succession: Scenario = async (stage) => {
  const [first, second, third] = [stage.actor(), stage.actor(), stage.actor()]
  const hold = await take(stage, first)
  const waiting = take(stage, second)
  await waiters(first, 1)
  await hold.release()
  await (await inTime('the waiter', waiting)).release()
  await (await take(stage, third)).release()
}

/** An operator ends a hold, its holder does not hear of it, and renews it after somebody else's turn. */
export const renewalAfterBreak: Scenario = async (stage) => {
  const [first, second, operator] = [stage.actor(), stage.actor(), stage.actor()]
  const broken = await take(stage, first)
  broken.look()
  first.way.onPush = () => {}
  await operator.locks.breakHold(LOCK)
  const next = await take(stage, second)
  next.look()
  await next.release()
  await settled(broken.hold.extend('55s'))
  await compare(broken)
}

/** A waiter hears of its grant when that has lapsed, and the next one holds. */
export const lateGrant: Scenario = async (stage) => {
  const [first, second, third] = [stage.actor(), stage.actor(), stage.actor()]
  const hold = await take(stage, first)
  const paused = take(stage, second, LAPSING)
  await waiters(first, 1)
  const wake = deferred<void>()
  const news: (() => void)[] = []
  second.way.onPush = (_news, deliver) => void news.push(deliver)
  second.way.around = async (_call, go) => {
    await wake.promise
    return go()
  }
  await hold.release()
  const next = await inTime('the next one', take(stage, third))
  const claims = second.way.count('claim')
  for (const deliver of news) deliver()
  second.way.onPush = (_news, deliver) => deliver()
  wake.resolve()
  let woken: RecordedHold | null = null
  void paused.then((granted) => {
    woken = granted
  })
  // It believes the old grant, or joins the line again.
  await eventually('what it does', () => woken !== null || second.way.count('claim') > claims)
  await compare(next, woken)
  if (woken === null) await (await inTime('its turn', paused)).release()
}

/** The answer to a claim is under way for so long that its hold lapses and the next one begins. */
export const lateReply: Scenario = async (stage) => {
  const [first, second] = [stage.actor(), stage.actor()]
  const arrival = deferred<void>()
  const granted = deferred<void>()
  let grants = 0
  for (const way of first.ways)
    way.around = async (call, go) => {
      const reply = await go()
      if (call.method !== 'claim') return reply
      if (++grants === first.ways.length) granted.resolve()
      await arrival.promise
      return reply
    }
  const late = tryTake(stage, first, LAPSING)
  await inTime('the grant', granted.promise)
  const next = await take(stage, second)
  arrival.resolve()
  await compare(next, await inTime('the late answer', late))
}

/** A waiter, and a lock that becomes free. */
export const patientWaiter: Scenario = async (stage) => {
  const [first, second] = [stage.actor(), stage.actor()]
  const hold = await take(stage, first)
  const from = Math.floor(now() * 1000)
  const giveUp = new AbortController()
  let next: RecordedHold | null = null
  const asking = second.locks.mutex(LOCK).acquire({ ...LONG, signal: giveUp.signal })
  const waiting = stage.recording
    .acquire(LOCK, 'mutex', () => asking)
    .then((granted) => {
      next = granted
    })
  await eventually('the claim', () => second.way.answered('claim') > 0)
  await hold.release()
  for (let turn = 0; turn < TURNS && next === null; turn++) await pass(TURN_MS)
  if (next === null) stage.recording.stillWaits(LOCK, 'mutex', from)
  giveUp.abort()
  await settled(waiting)
  await compare(next)
}

/** A reader comes while another one reads and a writer waits. */
export const lateReader: Scenario = async (stage) => {
  const [first, second, third] = [stage.actor(), stage.actor(), stage.actor()]
  const { recording } = stage
  const read = ({ locks }: Actor) => locks.readWrite(LOCK).read
  const early = await recording.acquire(LOCK, 'read', () => read(first).acquire(LONG))
  const writing = recording.acquire(LOCK, 'write', () => second.locks.readWrite(LOCK).write.acquire(LONG))
  await eventually('the claim of the writer', () => second.way.answered('claim') > 0)
  const late = await recording.acquire(LOCK, 'read', () => read(third).tryAcquire(LONG))
  await early?.release()
  await compare(await inTime('the writer', writing), late)
}

/** Two of three permits are taken, and two more are asked for. */
export const twoPairs: Scenario = async (stage) => {
  const [permits, capacity] = [2, 3]
  const takeTwo = ({ locks }: Actor): Promise<RecordedHold | null> => {
    const ask = (): Promise<Hold | null> => locks.semaphore(LOCK, capacity).tryAcquire({ ...LONG, permits })
    return stage.recording.acquire(LOCK, 'semaphore', ask, { permits, capacity })
  }
  await compare(await takeTwo(stage.actor()), await takeTwo(stage.actor()))
}
