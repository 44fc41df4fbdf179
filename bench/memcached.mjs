// The memcached store beside `add` and `delete` by hand over one socket, slice by slice.
import { Holdfast } from 'holdfast'
import { memcached as memcachedStore } from 'holdfast/memcached'
import { median, WARM_UP_MS } from './measure.mjs'
import { addAndDelete, holdfast } from './memcached-contenders.mjs'
import { memcachedServer } from './memcached-server.mjs'
import { beside, serial, together } from './slices.mjs'

const SLICE_MS = 60
const TASKS = 64

export async function memcached({ quick }) {
  const { address, stop } = await memcachedServer()
  const run = { warmUps: WARM_UP_MS / SLICE_MS, slices: quick ? 20 : 80 }
  const [ours, theirs] = [holdfast(address), addAndDelete(address)]
  const rows = {
    'one pair after the other': await beside(
      run,
      () => serial(SLICE_MS, () => ours.pair(0)),
      () => serial(SLICE_MS, () => theirs.pair(0)),
    ),
    '64 tasks on 64 locks': await beside(
      run,
      () => together(SLICE_MS, TASKS, ours.pair),
      () => together(SLICE_MS, TASKS, theirs.pair),
    ),
    '64 tasks on one lock': await beside(
      run,
      () => together(SLICE_MS, TASKS, () => ours.pair(0)),
      () => together(SLICE_MS, TASKS, () => theirs.pair(0)),
    ),
  }
  console.log('\nmemcached: holdfast beside add and delete by hand')
  for (const [name, { rate, peerRate, ratio }] of Object.entries(rows))
    console.log(
      `  ${name.padEnd(26)} ${count(rate)} pairs/s, by hand ${count(peerRate)}   ${ratio.toFixed(2)} × by hand`,
    )
  await Promise.all([ours.close(), theirs.close()])
  await handOffs(address)
  await stop()
}

/** From the release in one client to the grant in another, by how long the lock was held. */
async function handOffs(address) {
  console.log('Hand-off between two processes in line, one waiter')
  for (const heldMs of [5, 50, 500]) {
    const sides = [1, 2].map(() => new Holdfast(memcachedStore(address), { order: 'strict' }))
    const took = []
    let hold = await sides[0].mutex('pair').acquire()
    for (let round = 1; round <= 20; round++) {
      const next = sides[round % 2]
        .mutex('pair')
        .acquire()
        .then((mine) => ({ mine, at: performance.now() }))
      await new Promise((resolve) => setTimeout(resolve, heldMs * (0.75 + Math.random() / 2)))
      const left = performance.now()
      await hold.release()
      const { mine, at } = await next
      took.push(at - left)
      hold = mine
    }
    await hold.release()
    await Promise.all(sides.map((side) => side.close()))
    console.log(`  held for ${heldMs} ms: median ${median(took).toFixed(1)} ms`)
  }
}

function count(rate) {
  return Math.round(rate).toLocaleString('en').padStart(8)
}
