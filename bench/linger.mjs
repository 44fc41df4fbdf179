// Lingering leases: what the next hold in the same process costs, and what another process pays
// that begins to wait.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Holdfast, HoldfastError } from 'holdfast'
import { redis } from 'holdfast/redis'
import { median } from './measure.mjs'
import { beside, serial } from './slices.mjs'

const LINGER = '200ms'
const GOALS = { again: 50, roundTrips: 2 }

export async function lingering(url, plan) {
  const locks = new Holdfast(redis(url))
  try {
    const mutex = lingeringMutex(locks, 'linger')
    if (!mutex) return console.log("  Lingering is skipped: this build does not know the option 'linger'")
    await sameProcess(locks, mutex, plan)
    await otherProcess(locks, url, plan.handOffs)
  } finally {
    await locks.close()
  }
}

/** undefined: this build does not know the option. */
function lingeringMutex(locks, name) {
  try {
    return locks.mutex(name, { linger: LINGER })
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_ARGUMENT') return undefined
    throw error
  }
}

async function sameProcess(locks, mutex, plan) {
  const plain = locks.mutex('plain')
  const pair = (each) => async () => (await each.acquire()).release()
  const { rate, peerRate, ratio } = await beside(
    plan,
    () => serial(plan.sliceMs, pair(mutex)),
    () => serial(plan.sliceMs, pair(plain)),
  )
  const rates = [rate, peerRate].map((each) => Math.round(each).toLocaleString('en'))
  console.log(
    `  ${'Redis, lingering, the same process again'.padEnd(48)} ${ratio.toPrecision(3).padStart(6)} × ${'its own pair'.padEnd(11)} goal ${GOALS.again} ${ratio >= GOALS.again ? 'reached' : 'missed'} ${rates.join(' and ')} pairs/s`,
  )
}

/**
 * The other process asks for a lock that is free, for one whose lease lingers here, and for one
 * that is held here and released. The first two count from its question, the last from the release.
 * A round trip is one call of a lock to the store: what the free lock costs. A PING, which runs no
 * script, is printed beside it.
 */
async function otherProcess(locks, url, rounds) {
  const child = fork(join(import.meta.dirname, 'linger-worker.mjs'), [url])
  await once(child, 'message')
  const ask = async (command) => {
    child.send(command)
    return (await once(child, 'message'))[0]
  }
  const figures = { ping: [], free: [], lingering: [], held: [] }
  const [free, held] = ['free', 'held'].map((name) => locks.mutex(name))
  const lingerer = lingeringMutex(locks, 'lingering')
  for (let round = -20; round < rounds; round++) {
    const ping = await ask({ ping: true })
    await (await free.acquire()).release()
    const ofFree = await ask({ acquire: 'free' })
    await (await lingerer.acquire()).release()
    const ofLingering = await ask({ acquire: 'lingering' })
    const hold = await held.acquire()
    const served = ask({ acquire: 'held' })
    await waiterOf(locks, 'held')
    const releasedAt = nowMs()
    await hold.release()
    const ofHeld = await served
    if (round < 0) continue
    figures.ping.push(ping.ms)
    figures.free.push(ofFree.grantedAt - ofFree.askedAt)
    figures.lingering.push(ofLingering.grantedAt - ofLingering.askedAt)
    figures.held.push(ofHeld.grantedAt - releasedAt)
  }
  child.send({ end: true })
  await once(child, 'exit')
  report(figures)
}

function report(figures) {
  const { ping, free, lingering, held } = Object.fromEntries(
    Object.entries(figures).map(([name, values]) => [name, median(values)]),
  )
  const extra = (lingering - free) / free
  const verdict = extra <= GOALS.roundTrips ? 'reached' : 'missed'
  console.log(
    `  ${'Redis, lingering, another process asks'.padEnd(48)} ${extra.toFixed(2).padStart(6)} round trips more than for a free lock; goal at most ${GOALS.roundTrips} ${verdict}`,
  )
  const inMs = (ms) => `${ms.toFixed(3)} ms`
  const inPings = ((lingering - held) / ping).toFixed(2)
  console.log(
    `    free ${inMs(free)}, lingering ${inMs(lingering)}, from a release ${inMs(held)}, PING ${inMs(ping)}; ${inPings} PINGs more than from a release`,
  )
}

async function waiterOf(locks, name) {
  for (;;) {
    for await (const line of locks.inspect({ prefix: name }))
      if (line.name === name && line.waiters.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** By the clock that all processes of a machine share. */
function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6
}
