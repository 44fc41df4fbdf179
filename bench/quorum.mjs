import { median, medians, perSecond, perSecondTogether, table } from './measure.mjs'
import { contendedFor } from './processes.mjs'
import { quorumContenders } from './quorum-contenders.mjs'
import { redisServer } from './redis-server.mjs'

const OURS = ['holdfast', 'holdfast strict']
const PEERS = ['redlock', 'RedlockMutex']
const NAMES = [...OURS, ...PEERS]

/** A quorum of three Redis servers beside redlock and redis-semaphore's RedlockMutex on the same. */
export async function quorum({ roundMs, rounds, quick }) {
  const servers = await Promise.all([1, 2, 3].map(() => redisServer()))
  const where = servers.map(({ url }) => url).join(',')
  try {
    await oneLock(where, { rounds: quick ? 1 : 3, ms: quick ? 2000 : 5000 })
    await freeLocks(where, { roundMs, rounds })
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

async function freeLocks(where, { roundMs, rounds }) {
  const open = await Promise.all(NAMES.map(async (name) => [name, await quorumContenders[name](where)]))
  const each = (measure) => Object.fromEntries(open.map(([name, { pair }]) => [name, () => measure(pair)]))
  const many = await medians(
    rounds,
    each((pair) => perSecondTogether(roundMs, 64, pair)),
  )
  compare('64 tasks on 64 locks, one process', many)
  const serial = await medians(
    rounds,
    each((pair) => perSecond(roundMs, () => pair(0))),
  )
  compare('Free lock, one after the other', serial)
  for (const [, { close }] of open) await close()
}

function compare(title, rows) {
  const best = betterPeer(rows)
  table(title, 'pairs/s', rows, best)
  goal(`pairs × ${best}`, rows.holdfast / rows[best], 1)
}

function betterPeer(rows) {
  return PEERS.reduce((best, name) => (rows[name] > rows[best] ? name : best))
}

function goal(what, figure, least) {
  const verdict = figure >= least ? 'met' : 'MISSED'
  console.log(`  goal: ${what} at least ${least}: ${figure.toFixed(2)}, ${verdict}`)
}
