import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/**
 * `processes` × `tasks` loops of one contestant on one lock, each `turns` times. Gives the grants per second until the last one is
 * done: a contestant that lets one task run ahead while the others sleep is not served for that. `evenness` is the time at
 * which the first task was done over that of the last: 1 if all were served alike.
 */
export async function contended({ name, folder, processes, tasks, turns }) {
  const children = Array.from({ length: processes }, () =>
    fork(join(import.meta.dirname, 'worker.mjs'), [name, folder, String(tasks), String(turns)]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const start = performance.now()
  const results = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  const finishedAt = (await Promise.all(results)).flatMap(([message]) => message)
  const seconds = (performance.now() - start) / 1000
  await Promise.all(children.map((child) => (child.exitCode === null ? once(child, 'exit') : undefined)))
  return {
    perSecond: (processes * tasks * turns) / seconds,
    evenness: Math.min(...finishedAt) / Math.max(...finishedAt),
  }
}
