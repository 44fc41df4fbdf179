import { median, medians, table } from './measure.mjs'
import { contendedFor } from './processes.mjs'
import { quorumContenders } from './quorum-contenders.mjs'
import { redisServer } from './redis-server.mjs'
import { beside, serial, together } from './slices.mjs'

const OURS = ['holdfast', 'holdfast strict']
const PEERS = ['redlock', 'RedlockMutex']
const NAMES = [...OURS, ...PEERS]
const SLICE_MS = 100

/** A quorum of three Redis servers beside redlock and redis-semaphore's RedlockMutex on the same. */
export async function quorum({ quick }) {
  const servers = await Promise.all([1, 2, 3].map(() => redisServer()))
  const where = servers.map(({ url }) => url).join(',')
  try {
    await oneLock(where, { rounds: quick ? 1 : 3, ms: quick ? 2000 : 5000 })
    await freeLocks(where, { quick })
  } finally {
    for (const server of servers) await server.stop()
  }
}

async function oneLock(where, { rounds, ms }) {
  const evenness = Object.fromEntries(NAMES.map((name) => [name, []]))
  const measure = async (name) => {
    const result = await contendedFor({
      suite: 'quorum',
      name,
      folder: where,
      processes: 4,
      tasks: 16,
      ms,
    })
    evenness[name].push(result.evenness)
    return result.perSecond
  }
  const rows = await medians(rounds, Object.fromEntries(NAMES.map((name) => [name, () => measure(name)])))
  const best = betterPeer(rows)
  table(`One lock, 4 processes × 16 tasks for ${ms / 1000} s`, 'grants/s', rows, best)
  const even = Object.fromEntries(NAMES.map((name) => [name, median(evenness[name])]))
  for (const name of NAMES)
    console.log(`  ${name.padEnd(28)} least-served task / most-served: ${even[name].toFixed(2)}`)
  goal('evenness', even.holdfast, 0.9)
  goal(`grants × ${best}`, rows.holdfast / rows[best], 3)
  goal(`grants in strict order × ${best}`, rows['holdfast strict'] / rows[best], 1)
}

/** In slices beside each peer: what else runs on the machine hits both. */
async function freeLocks(where, { quick }) {
  const open = Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await quorumContenders[name](where)])),
  )
  const count = { warmUps: quick ? 5 : 20, slices: quick ? 20 : 100 }
  const compare = async (title, measure) => {
    console.log(`\n${title}`)
    for (const name of OURS) {
      const ratios = []
      for (const peer of PEERS) {
        const ours = () => measure(open[name].pair)
        const { rate, peerRate, ratio } = await beside(count, ours, () => measure(open[peer].pair))
        const figures = [rate, peerRate].map((each) => Math.round(each).toLocaleString('en'))
        console.log(
          `  ${name.padEnd(16)} ${figures[0]} pairs/s, ${peer} ${figures[1]}: ${ratio.toPrecision(3)} ×`,
        )
        ratios.push(ratio)
      }
      if (name === 'holdfast') goal('pairs × the better of the two', Math.min(...ratios), 1)
    }
  }
  await compare('64 tasks on 64 locks, one process', (pair) => together(SLICE_MS, 64, pair))
  await compare('Free lock, one after the other', (pair) => serial(SLICE_MS, () => pair(0)))
  for (const { close } of Object.values(open)) await close()
}

function betterPeer(rows) {
  return PEERS.reduce((best, name) => (rows[name] > rows[best] ? name : best))
}

function goal(what, figure, least) {
  const verdict = figure >= least ? 'met' : 'MISSED'
  console.log(`  goal: ${what} at least ${least}: ${figure.toFixed(2)}, ${verdict}`)
}
