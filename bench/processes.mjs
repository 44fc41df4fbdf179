import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Nobody waits longer than this for a contestant that sleeps most of the time. */
const LONGEST_MS = 20_000

/**
 * `processes` × `tasks` loops of one contestant on one lock, each `turns` times. Gives the grants
 * per second until the last one is done: a contestant that lets one task run ahead while the others
 * sleep is not rewarded for that. `evenness` is the time at which the first task was done over that
 * of the last: 1 if all were served alike, 0 if somebody was not done in the end. `onWarm` is
 * called, and awaited, when all have warmed up.
 */
export async function contended({ suite, name, folder, processes, tasks, turns, onWarm }) {
  const children = Array.from({ length: processes }, () =>
    fork(join(import.meta.dirname, 'worker.mjs'), [suite, name, folder, String(tasks), String(turns)]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  await onWarm?.()
  const start = performance.now()
  const results = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  const stop = setTimeout(() => {
    for (const child of children) if (child.connected) child.send('stop')
  }, LONGEST_MS)
  const done = (await Promise.all(results)).flatMap(([message]) => message)
  clearTimeout(stop)
  const seconds = (performance.now() - start) / 1000
  await Promise.all(children.map((child) => (child.exitCode === null ? once(child, 'exit') : undefined)))
  const isAll = done.every((task) => task.turns === turns)
  const times = done.map((task) => task.atMs)
  return {
    perSecond: done.reduce((sum, task) => sum + task.turns, 0) / seconds,
    evenness: isAll ? Math.min(...times) / Math.max(...times) : 0,
  }
}

/**
 * The same for a while. `evenness` is the number of turns of the least-served task over that of the
 * most-served.
 */
export async function contendedFor({ suite = 'cohort', name, folder, processes, tasks, ms }) {
  const children = Array.from({ length: processes }, () =>
    fork(join(import.meta.dirname, 'worker.mjs'), [suite, name, folder, String(tasks), `${ms}ms`]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const results = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  const stop = setTimeout(() => {
    for (const child of children) if (child.connected) child.send('stop')
  }, ms + LONGEST_MS)
  const done = (await Promise.all(results)).flatMap(([message]) => message)
  clearTimeout(stop)
  await Promise.all(children.map((child) => (child.exitCode === null ? once(child, 'exit') : undefined)))
  const turns = done.map((task) => task.turns)
  const grants = turns.reduce((sum, each) => sum + each, 0)
  return {
    grants,
    perSecond: grants / (ms / 1000),
    evenness: grants && Math.min(...turns) / Math.max(...turns),
  }
}

/**
 * A process with one task beside one with a thousand, all on one lock, until the lone one has had
 * `turns` turns. Gives, for each of those, how many of the others were served while it waited.
 */
export async function oneAgainstMany({ name, folder, turns }) {
  const start = (tasks, count) =>
    fork(join(import.meta.dirname, 'worker.mjs'), [
      'cohort',
      name,
      folder,
      String(tasks),
      String(count),
      'times',
    ])
  const [lone, crowd] = [start(1, turns), start(1000, Infinity)]
  await Promise.all([lone, crowd].map((child) => once(child, 'message')))
  crowd.send('go')
  await once(crowd, 'message')
  lone.send('go')
  const [{ times: waits }] = await once(lone, 'message')
  crowd.send('stop')
  const [{ times: served }] = await once(crowd, 'message')
  await Promise.all([lone, crowd].map((child) => (child.exitCode === null ? once(child, 'exit') : undefined)))
  return waits.map(([asked, got]) => served.filter(([, at]) => at > asked && at < got).length)
}
