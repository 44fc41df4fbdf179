import { Holdfast } from 'holdfast'
import { startTeam } from './team.mjs'

const PROCESSES = 4
const CLIENTS = 100
/** What a process may have more at the end than after half of the time, when it is warm. */
const MORE_HEAP_MB = 5
const MORE_FILES = 3
/** STORE_UNAVAILABLE: the wait was over before the store had answered. */
const EXPECTED = ['served', 'ACQUIRE_TIMEOUT', 'LINE_FULL', 'STORE_UNAVAILABLE']

/**
 * Each loads a store and gives `{ facts, faults }`: what was seen, and what must not be.
 * `size` is 1, or less for a quick look.
 */
export const SCENARIOS = { crowd, line, strict, renewals, overload }

/** 100 clients on 10,000 locks. */
async function crowd({ url, count }, size) {
  const resources = 10_000 * size
  const [clients, rounds] = [Math.ceil((CLIENTS * size) / PROCESSES), 6]
  const team = await startTeam(PROCESSES, { url, clients })
  const samples = []
  const sums = { pairs: 0, fallen: 0 }
  const begin = performance.now()
  for (let round = 0; round < rounds; round++) {
    for (const done of await team.all('cycle', { resources, loops: 4, ms: 10_000 * size })) {
      sums.pairs += done.pairs
      sums.fallen += done.fallen
    }
    samples.push({ processes: await team.all('sample'), keys: await count(url) })
  }
  const seconds = (performance.now() - begin) / 1000
  await team.end()
  return {
    facts: {
      'clients, locks': `${PROCESSES * clients}, ${resources.toLocaleString('en')}`,
      'pairs, per second': `${number(sums.pairs)}, ${number(sums.pairs / seconds)}`,
      ...growthFacts(samples),
      'keys, after each sixth': samples.map(({ keys }) => number(keys)).join(', '),
    },
    faults: [
      ...(sums.fallen ? [`${sums.fallen} fences did not rise`] : []),
      ...growthFaults(samples),
      // Every lock has been used after the first rounds.
      ...(samples.at(-1).keys > samples[1].keys * 1.2 + 1000 ? ['the number of keys goes on growing'] : []),
    ],
  }
}

/** 100,000 waiters for one lock. Those of one client share a place in the store. */
function line(store, size) {
  return queued(store, { each: 1000 * size, places: CLIENTS })
}

/** Waiters with a place of their own in the store, as many as its page says it is fit for. */
function strict(store, size) {
  const each = Math.ceil((store.strictWaiters * size) / CLIENTS)
  return queued(store, { each, places: CLIENTS * each, order: 'strict' })
}

async function queued({ url, count }, { each, places, order }) {
  const all = CLIENTS * each
  const keysBefore = await count(url)
  const options = { order, storeTimeout: '5m' }
  const team = await startTeam(PROCESSES, { url, clients: CLIENTS / PROCESSES, options })
  const first = await Holdfast.open(url, options)
  const hold = await first.mutex('line').acquire({ lease: '10m' })
  const begin = performance.now()
  await team.all('queue', { name: 'line', each })
  await inLine(first, 'line', places)
  const queuedAt = performance.now()
  const waiting = await team.all('sample')
  const serving = team.all('served')
  const releasedAt = performance.now()
  await hold.release()
  const grants = (await serving).flat()
  const servedMs = performance.now() - releasedAt
  const after = await team.all('sample')
  await Promise.all([team.end(), first.close()])
  const left = (await count(url)) - keysBefore
  return {
    facts: {
      'waiters, places in the store': `${number(all)}, ${number(places)}`,
      'until all were in line': `${((queuedAt - begin) / 1000).toFixed(1)} s`,
      'until all were served': `${(servedMs / 1000).toFixed(1)} s, ${number(all / (servedMs / 1000))} per second`,
      'memory of a waiter': `${(((heapOf(waiting) - heapOf(after)) * 1024) / all).toFixed(1)} kB`,
      'keys left': number(left),
    },
    faults: [
      ...orderFaults(grants, hold.fence, all),
      ...(left > 10 + places / 20 ? [`${left} keys are left`] : []),
    ],
  }
}

/** As many renewals as 100 holds with the default lease need in a day. */
async function renewals({ url, count }, size) {
  const [holds, wanted] = [2500, Math.ceil((864_000 * size) / PROCESSES)]
  const team = await startTeam(PROCESSES, { url, clients: 1, options: { storeTimeout: '1m' } })
  const results = await team.all('keep', { count: holds, lease: '5s', renewals: wanted })
  await team.end()
  const total = (name) => results.reduce((sum, each) => sum + each[name], 0)
  const samples = results[0].samples.map((_, at) => ({ processes: results.map((each) => each.samples[at]) }))
  const seconds = Math.max(...results.map((each) => each.seconds))
  return {
    facts: {
      'holds, lease': `${number(total('held'))}, 5 s`,
      'renewals, per second': `${number(total('renewals'))}, ${number(total('renewals') / seconds)}`,
      'lost, refused': `${total('lost')}, ${total('refused')}`,
      ...growthFacts(samples),
      'keys left': number(await count(url)),
    },
    faults: [
      ...(total('lost') + total('refused') > 0 ? [`${total('lost')} lost, ${total('refused')} refused`] : []),
      ...growthFaults(samples),
    ],
  }
}

/** Five times as many callers as can be served, first with a line of any length, then with a bound. */
async function overload({ url }, size) {
  const [holdMs, perSecond, ms] = [10, 500, 20_000 * size]
  const facts = { 'callers come': `${perSecond} per second; a hold takes ${holdMs} ms, so 100 can be served` }
  const faults = []
  for (const options of [{ wait: '2s' }, { wait: '2s', maxWaiters: 50 }]) {
    const team = await startTeam(PROCESSES, { url, clients: 5, options: { order: 'strict' } })
    const watcher = await Holdfast.open(url)
    const arriving = team.all('arrive', {
      name: 'hot',
      perSecond: perSecond / PROCESSES,
      ms,
      holdMs,
      options,
    })
    const longest = await longestLine(watcher, 'hot', arriving)
    const results = await arriving
    const outcomes = results.flatMap((each) => each.outcomes)
    const drainMs = Math.max(...results.map((each) => each.drainMs))
    const begin = performance.now()
    await watcher.mutex('hot').run(() => {})
    const nextMs = performance.now() - begin
    await Promise.all([team.end(), watcher.close()])
    const title = options.maxWaiters ? `maxWaiters ${options.maxWaiters}` : 'no bound'
    for (const code of new Set(outcomes.map(([what]) => what))) {
      const times = outcomes.filter(([what]) => what === code).map(([, took]) => took)
      facts[`${title}: ${code}`] = `${number(times.length)}, told after ${quantiles(times)} ms`
      if (!EXPECTED.includes(code)) faults.push(`${title}: ${code}`)
    }
    facts[`${title}: longest line`] = number(longest)
    facts[`${title}: empty after`] = `${drainMs.toFixed(0)} ms; then a caller waits ${nextMs.toFixed(1)} ms`
    if (options.maxWaiters && longest > options.maxWaiters)
      faults.push(`${longest} wait in spite of ${title}`)
  }
  return { facts, faults }
}

async function inLine(locks, name, wanted) {
  while ((await lineLength(locks, name)) < wanted) await new Promise((resolve) => setTimeout(resolve, 500))
}

async function longestLine(locks, name, until) {
  let longest = 0
  let isOver = false
  const end = () => {
    isOver = true
  }
  until.then(end, end)
  while (!isOver) {
    longest = Math.max(longest, await lineLength(locks, name))
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return longest
}

async function lineLength(locks, name) {
  for await (const { waiters } of locks.inspect({ prefix: name })) return waiters.length
  return 0
}

/** Every waiter once, with fences that rise with the time of the grant. */
function orderFaults(grants, before, all) {
  const sorted = grants.toSorted(([, one], [, other]) => one - other)
  let highest = before
  let fallen = 0
  for (const [fence] of sorted) {
    if (fence <= highest) fallen++
    highest = Math.max(highest, fence)
  }
  return [
    ...(grants.length === all ? [] : [`${all - grants.length} were not served`]),
    ...(fallen === 0 ? [] : [`${fallen} fences did not rise`]),
  ]
}

function heapOf(processes) {
  return processes.reduce((sum, { heapMb }) => sum + heapMb, 0)
}

function growthFacts(samples) {
  const row = (key, digits) =>
    samples.map(({ processes }) => Math.max(...processes.map((each) => each[key])).toFixed(digits)).join(', ')
  return {
    'heap of the largest process': `${row('heapMb', 1)} MB`,
    resident: `${row('rssMb', 0)} MB`,
    'open files': row('files', 0),
  }
}

function growthFaults(samples) {
  const [before, last] = [samples[3].processes, samples.at(-1).processes]
  return last.flatMap((each, index) => [
    ...(each.heapMb - before[index].heapMb > MORE_HEAP_MB ? ['the heap of a process goes on growing'] : []),
    ...(each.files - before[index].files > MORE_FILES ? ['a process opens more and more files'] : []),
  ])
}

function quantiles(times) {
  const sorted = times.toSorted((one, other) => one - other)
  const at = (part) => sorted[Math.floor((sorted.length - 1) * part)].toFixed(0)
  return `${at(0.5)} (half), ${at(0.99)} (99 %)`
}

function number(figure) {
  return Math.round(figure).toLocaleString('en')
}
