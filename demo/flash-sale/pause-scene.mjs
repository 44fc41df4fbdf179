import { on } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { ended } from './crew.mjs'
import { Warehouse } from './warehouse.mjs'

export const LEASE_MS = 1500

/**
 * Worker A takes the lock and is stopped (SIGSTOP) before it writes. Its lease runs out, worker B gets the lock and writes.
 * Then, or `longerMs` later, A goes on (SIGCONT) and writes what it had prepared, with a fence that is no longer the newest.
 * @param {{
 *   crew: import('./crew.mjs').Crew,
 *   lock: { store: string, name: string },
 *   tell(text: string): void,
 *   warehouse?: Warehouse,
 *   longerMs?: number,
 * }} scene
 */
export async function pauseScene({ crew, lock, tell, warehouse = new Warehouse(), longerMs = 0 }) {
  const args = [JSON.stringify({ ...lock, lease: LEASE_MS })]

  const a = actor(crew.start('worker.mjs', args))
  const { fence: fenceOfA } = await a.next('granted')
  const grantedAt = performance.now()
  /** When each thing happened, in milliseconds after A got the lock. */
  const moments = { aStopped: 0, bGranted: 0, bWrote: 0, bEnded: 0, aWoke: 0, aWrote: 0 }
  /** @param {keyof typeof moments} moment */
  const note = (moment) => {
    moments[moment] = Math.round(performance.now() - grantedAt)
  }
  await a.next('ready')
  const stoppedAt = performance.now()
  a.process.kill('SIGSTOP')
  note('aStopped')
  tell(`A holds the lock with fence ${fenceOfA}, lease ${LEASE_MS} ms, and is stopped before it writes.`)

  const b = actor(crew.start('worker.mjs', args))
  const { fence: fenceOfB } = await b.next('granted')
  note('bGranted')
  tell(`B gets the lock after ${Math.round(performance.now() - stoppedAt)} ms, with fence ${fenceOfB}.`)
  await b.next('ready')
  const newest = await letWrite(b, warehouse)
  note('bWrote')
  tell(`B writes: ${newest.isAccepted ? 'accepted' : 'refused'}.`)
  await b.ended
  note('bEnded')
  await wait(longerMs)

  a.process.kill('SIGCONT')
  note('aWoke')
  const stale = await letWrite(a, warehouse)
  note('aWrote')
  tell(
    `A goes on after ${Math.round(performance.now() - stoppedAt)} ms; its hold.isValid is ${stale.isValid}.`,
  )
  tell(`A writes all the same, with fence ${stale.fence}: ${stale.isAccepted ? 'ACCEPTED' : 'refused'}.`)
  await a.ended

  return {
    isValidOnWaking: stale.isValid,
    isStaleRefused: stale.fence === fenceOfA && fenceOfA < fenceOfB && !stale.isAccepted,
    isNewestIntact: newest.isAccepted && warehouse.content === newest.content,
    isNewestAccepted: newest.isAccepted,
    isStaleAccepted: stale.isAccepted,
    moments,
  }
}

/**
 * Lets a worker go on, and answers the write that it sends.
 * @param {ReturnType<typeof actor>} worker
 * @param {Warehouse} warehouse
 */
async function letWrite(worker, warehouse) {
  worker.process.send('go on')
  const { isValid } = await worker.next('woke')
  const { fence, content } = await worker.next('write')
  const isAccepted = warehouse.write(fence, content)
  worker.process.send({ isAccepted })
  return { isValid, fence, content, isAccepted }
}

/**
 * A worker and the messages it sends, one after the other.
 * @param {import('node:child_process').ChildProcess} process
 */
function actor(process) {
  const end = ended(process)
  const messages = on(process, 'message')
  /** @param {string} event */
  async function next(event) {
    const { value } = await Promise.race([
      messages.next(),
      end.then(() => Promise.reject(new Error(`a worker ended before '${event}'`))),
    ])
    const [message] = value
    if (message.event !== event) throw new Error(message.reason ?? `'${message.event}' instead of '${event}'`)
    return message
  }
  return { process, next, ended: end }
}
