import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Nobody waits longer than this for a contestant that sleeps most of the time. */
const LONGEST_MS = 20_000

/**
 * `processes` × `tasks` loops of one contestant on one lock, each `turns` times. Gives the grants per second until the last one is
 * done: a contestant that lets one task run ahead while the others sleep is not rewarded for that. `evenness` is the time at
 * which the first task was done over that of the last: 1 if all were served alike, 0 if somebody was not done in the end.
 */
export async function contended({ suite, name, folder, processes, tasks, turns }) {
  const children = Array.from({ length: processes }, () =>
    fork(join(import.meta.dirname, 'worker.mjs'), [suite, name, folder, String(tasks), String(turns)]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
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
