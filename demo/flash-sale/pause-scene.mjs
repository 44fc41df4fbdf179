import { on } from 'node:events'
import { ended } from './crew.mjs'
import { Warehouse } from './warehouse.mjs'

const LEASE_MS = 1500

/**
 * Worker A takes the lock and is stopped (SIGSTOP) before it writes. Its lease runs out, worker B gets the lock and writes.
 * Then A goes on (SIGCONT) and writes what it had prepared, with a fence that is no longer the newest.
 * @param {{
 *   crew: import('./crew.mjs').Crew,
 *   lock: { store: string, name: string },
 *   tell(text: string): void,
 * }} scene
 */
export async function pauseScene({ crew, lock, tell }) {
  const warehouse = new Warehouse()
  const args = [JSON.stringify({ ...lock, lease: LEASE_MS })]

  const a = actor(crew.start('worker.mjs', args))
  const { fence: fenceOfA } = await a.next('granted')
  await a.next('ready')
  const stoppedAt = performance.now()
  a.process.kill('SIGSTOP')
  tell(`A holds the lock with fence ${fenceOfA}, lease ${LEASE_MS} ms, and is stopped before it writes.`)

  const b = actor(crew.start('worker.mjs', args))
  const { fence: fenceOfB } = await b.next('granted')
  tell(`B gets the lock after ${Math.round(performance.now() - stoppedAt)} ms, with fence ${fenceOfB}.`)
  await b.next('ready')
  const newest = await letWrite(b, warehouse)
  tell(`B writes: ${newest.isAccepted ? 'accepted' : 'refused'}.`)
  await b.ended

  a.process.kill('SIGCONT')
  const stale = await letWrite(a, warehouse)
  tell(
    `A goes on after ${Math.round(performance.now() - stoppedAt)} ms; its hold.isValid is ${stale.isValid}.`,
  )
  tell(`A writes all the same, with fence ${stale.fence}: ${stale.isAccepted ? 'ACCEPTED' : 'refused'}.`)
  await a.ended

  return {
    isValidOnWaking: stale.isValid,
    isStaleRefused: stale.fence === fenceOfA && fenceOfA < fenceOfB && !stale.isAccepted,
    isNewestIntact: newest.isAccepted && warehouse.content === newest.content,
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
