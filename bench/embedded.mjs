import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contenders } from './contenders.mjs'
import { median, medians, perSecond, perSecondTogether, table } from './measure.mjs'
import { contended } from './processes.mjs'

/** The embedded stores beside async-mutex (one process) and proper-lockfile (several). */
export async function embedded({ roundMs, rounds, quick }) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const inProcess = ['async-mutex', 'holdfast memory']
  const acrossProcesses = ['proper-lockfile', 'holdfast sqlite']
  try {
    for (const [names, peer] of [
      [inProcess, 'async-mutex'],
      [acrossProcesses, 'proper-lockfile'],
    ]) {
      const open = await Promise.all(names.map(async (name) => [name, await contenders[name](folder)]))
      const each = (measure) =>
        Object.fromEntries(open.map(([name, { pair }]) => [name, () => measure(pair)]))
      const serial = await medians(
        rounds,
        each((pair) => perSecond(roundMs, () => pair(0))),
      )
      table('Free lock, one task', 'pairs/s', serial, peer)
      const many = await medians(
        rounds,
        each((pair) => perSecondTogether(roundMs, 64, pair)),
      )
      table('64 tasks on 64 locks, one process', 'pairs/s', many, peer)
      for (const [, { close }] of open) await close()
    }
    const all = ['proper-lockfile', 'proper-lockfile, 1-2 ms', 'holdfast sqlite']
    await contention({ folder, rounds, names: all, tasks: 1, turns: quick ? 100 : 250 })
    await contention({ folder, rounds, names: all, tasks: 4, turns: quick ? 5 : 25 })
    await contention({ folder, rounds, names: all.slice(1), tasks: 16, turns: quick ? 5 : 20 })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function contention({ folder, rounds, names, tasks, turns }) {
  const evenness = Object.fromEntries(names.map((name) => [name, []]))
  const measure = async (name) => {
    const result = await contended({ suite: 'embedded', name, folder, processes: 4, tasks, turns })
    evenness[name].push(result.evenness)
    return result.perSecond
  }
  const rows = await medians(rounds, Object.fromEntries(names.map((name) => [name, () => measure(name)])))
  table(`One lock, 4 processes × ${tasks} × ${turns} turns, until all are done`, 'grants/s', rows, names[0])
  for (const name of names) {
    console.log(`  ${name.padEnd(28)} first task done / last: ${median(evenness[name]).toFixed(2)}`)
  }
}
