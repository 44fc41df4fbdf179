import assert from 'node:assert/strict'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { LockOrder } from '../../primitives/options.js'
import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'
import { lingeringMutex } from './lock-choice.js'
import type { Witness } from './witness.js'

interface Present {
  readonly process: VirtualProcess
  readonly locks: Holdfast
}

/**
 * Far more than it takes without faults, and less than a renewal: a waiter must not depend on the
 * next pulse.
 */
const SERVED_WITHIN_MS = 5_000
/** A lease that is not given back as soon as others wait keeps them waiting for too long. */
const LINGER_MS = 60_000
const ORDERS: readonly LockOrder[] = ['cohort', 'strict']

/** Long: a waiter that sleeps for a part of its lease was forgotten, too. */
const LEASE_MS = 600_000
/** Requests with different leases do not share a place in line; those with the same one do. */
const SHARES = [1, 1, 1.1, 1.1]
/** The line moves on while the waiters ask the store about their places. */
const LONGEST_HOLD_MS = 30

/**
 * All processes ask for all locks at once, for reading and for writing, in both orders and without
 * a limit. Some leases linger when they begin. No fault happens any more, so a waiter that is not
 * served soon was forgotten.
 */
export async function rollCall(
  world: VirtualWorld,
  witness: Witness,
  present: readonly Present[],
  { resources, lease: leaseMs = LEASE_MS }: { resources: readonly string[]; lease: number | undefined },
): Promise<void> {
  for (const [index, name] of resources.entries())
    await leaveLingering(world, present[index % present.length], name)
  const random = world.stream('roll call')
  const unserved = new Set<string>()
  const calls = present.flatMap(({ process, locks }) =>
    resources.flatMap((name) =>
      ORDERS.flatMap((order) => {
        const { read, write } = locks.readWrite(name, { order })
        return [read, write].flatMap((lock, index) =>
          SHARES.map(async (share, number) => {
            const purpose = `${index === 0 ? 'reading' : 'writing'} ${number}`
            const call = `${process.name} for ${name}, ${order}, ${purpose}`
            unserved.add(call)
            const newest = witness.newestFence(name)
            const hold = await lock.acquire({ lease: share * leaseMs })
            unserved.delete(call)
            witness.granted(process, hold, newest)
            await new Promise<void>((resolve) => {
              const ms = random() < 0.5 ? 0 : random() * LONGEST_HOLD_MS
              process.timer(ms, resolve, { keepAlive: true })
            })
            await hold.release()
          }),
        )
      }),
    ),
  )
  const all = Promise.all(calls)
  // If it fails after the limit, that has been told.
  all.catch(() => {})
  await world.run(world.timeMs + SERVED_WITHIN_MS)
  // A violation also keeps others from being served, and says more.
  witness.check()
  assert.deepEqual([...unserved], [], `not served within ${SERVED_WITHIN_MS} ms without any fault`)
  await world.until(all)
}

async function leaveLingering(
  world: VirtualWorld,
  process: Present | undefined,
  name: string,
): Promise<void> {
  const lock = process && lingeringMutex(process.locks, name, LINGER_MS)
  if (lock) await world.until(lock.run(() => {}))
}
