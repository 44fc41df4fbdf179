import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/**
 * Processes with some clients each. `all` calls a function of worker.mjs in every one, and gives
 * their results.
 */
export async function startTeam(processes, { url, clients, options }) {
  const flags = ['--expose-gc', '--max-semi-space-size=8', '--no-warnings']
  const members = Array.from({ length: processes }, () =>
    asked(fork(join(import.meta.dirname, 'worker.mjs'), { execArgv: flags })),
  )
  const all = (name, task) => Promise.all(members.map((ask) => ask(name, task)))
  await all('open', { url, clients, options })
  const end = async () => {
    await all('close')
    await Promise.all(members.map(({ child }) => child.exitCode ?? once(child, 'exit')))
  }
  return { all, end }
}

/** Asks a process for one thing after the other, or for several at once. */
function asked(child) {
  const open = new Map()
  let last = 0
  child.on('message', ({ id, result, error }) => {
    const { resolve, reject } = open.get(id)
    open.delete(id)
    if (error === undefined) resolve(result)
    else reject(new Error(error))
  })
  child.on('exit', (code) => {
    for (const { reject } of open.values()) reject(new Error(`A process ended with ${code}`))
  })
  const ask = (name, task) =>
    new Promise((resolve, reject) => {
      const id = ++last
      open.set(id, { resolve, reject })
      child.send({ id, name, task })
    })
  return Object.assign(ask, { child })
}
