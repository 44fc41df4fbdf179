import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startOf } from '../../src/cli/session.js'
import { WATCHDOG_SCRIPT } from '../../src/cli/watchdog-script.js'
import { loadDriver } from '../../src/drivers/sqlite.js'
import { isBusy } from '../../src/drivers/sqlite-failures.js'
import { Bench, isRunning, killAfterwards, Running, stateOf, until } from './processes.js'

const STUBBORN = 'trap "" TERM; sleep 60 & echo "child $!"; echo "command $$"; while :; do sleep 0.05; done'

async function pidOf(running: Running, name: string): Promise<number> {
  return killAfterwards(Number((await running.wrote(new RegExp(`${name} (\\d+)`)))[1]))
}

/** Stops it, but not inside a transaction: it would lock the whole store, for everybody. */
async function stop(running: Running, bench: Bench): Promise<void> {
  const store = (await loadDriver()).open(bench.path('locks.db'))
  const isFree = (): boolean => {
    try {
      store.exec('BEGIN IMMEDIATE; ROLLBACK')
      return true
    } catch (error) {
      if (!isBusy(error)) throw error
      return false
    }
  }
  await until('stopped between two transactions', async () => {
    running.kill('SIGSTOP')
    await until('stopped', () => stateOf(running.pid) === 'T')
    if (isFree()) return true
    running.kill('SIGCONT')
    return false
  })
  store.close()
}

test('kill -9 of holdfast: the command is ended, and the lock ends with its lease, not before', async () => {
  const bench = new Bench()
  const running = bench.script('a', ['--lease', '6s', '--grace', '300ms'], STUBBORN)
  const [command, child] = [await pidOf(running, 'command'), await pidOf(running, 'child')]
  running.kill('SIGKILL')
  const askedAt = Date.now()
  const expires = Date.parse((await bench.lines())[0]?.holders[0]?.expires ?? '')
  // If `ls` stood still between its looks at the store and at the clock, it named too late a time.
  const lateMs = Date.now() - askedAt
  const next = bench.script('a', [], 'echo inside')
  await next.wrote(/inside/)
  expect([command, child].map(isRunning)).toEqual([false, false])
  // Rounded to milliseconds on the way through a Date.
  expect(Date.now()).toBeGreaterThan(expires - lateMs - 3)
  expect((await next.done).code).toBe(0)
})

test('holdfast stopped for longer than its lease: the command is ended by then', async () => {
  const bench = new Bench()
  const running = bench.script('a', ['--lease', '3s', '--grace', '0s'], STUBBORN)
  const [command, child] = [await pidOf(running, 'command'), await pidOf(running, 'child')]
  await stop(running, bench)
  const next = bench.script('a', ['--lease', '20s'], 'echo inside; read end')
  await until('nothing left', () => !isRunning(command) && !isRunning(child))
  await next.wrote(/inside/)
  running.kill('SIGCONT')
  expect((await running.done).code).toBe(76)
  expect((await bench.lines())[0]?.holders[0]?.pid).toBe(next.pid)
  next.type('\n')
  expect((await next.done).code).toBe(0)
})

test('a command that needs longer than its lease to end gets SIGTERM once', async () => {
  const bench = new Bench()
  const script =
    'trap "echo told; is_told=1" TERM; echo "command $$"; until [ "$is_told" ]; do sleep 0.05; done; for i in $(seq 60); do sleep 0.1; done'
  const running = bench.script('a', ['--lease', '3s', '--grace', '60s'], script)
  const command = await pidOf(running, 'command')
  await bench.holdfast(['break', 'a']).done
  await running.wrote(/told/)
  // Now only the watchdog could tell it again.
  await stop(running, bench)
  await until('the command has ended', () => !isRunning(command))
  running.kill('SIGCONT')
  const { code, stdout } = await running.done
  expect({ code, told: stdout.match(/told/g) }).toEqual({ code: 76, told: ['told'] })
})

test('a command shorter than its lease leaves no watchdog behind', async () => {
  const bench = new Bench()
  const running = bench.script(
    'a',
    [],
    `ps -A -o pid= -o ppid= -o args= | grep holdfast-watchdog; echo listed`,
  )
  await running.done
  const watchdog = new RegExp(`^\\s*(\\d+)\\s+${running.pid}\\s`, 'm').exec(running.stdout)
  expect(watchdog).not.toBeNull()
  await until('the watchdog has gone', () => !isRunning(Number(watchdog?.[1])))
})

test.runIf(process.platform === 'linux')(
  'it leaves alone a stranger that got the number of the command',
  async () => {
    const bench = new Bench()
    const stranger = new Running(spawn('sleep', ['60'], { detached: true }))
    const watchdog = bench.start('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'watchdog', '0'])
    watchdog.type(`watch ${stranger.pid} 12345\nalive 0\n`)
    watchdog.end()
    expect((await watchdog.done).code).toBe(0)
    expect(isRunning(stranger.pid)).toBe(true)
    stranger.kill('SIGKILL')
    await stranger.done
  },
)

test.runIf(process.platform === 'linux')(
  'slow looks at the processes do not make its grace longer',
  async () => {
    const bench = new Bench()
    mkdirSync(bench.path('bin'))
    // A pause of a second stands for a look at thousands of processes.
    const sleep = `#!/bin/sh\necho "$1" >>'${bench.path('naps')}'\nexec /bin/sleep 1`
    writeFileSync(`${bench.path('bin')}/sleep`, sleep, { mode: 0o755 })
    const stubborn = 'trap "" TERM; echo ready; while :; do sleep 1; done'
    const command = new Running(spawn('/bin/sh', ['-c', stubborn], { detached: true }))
    await command.wrote(/ready/)
    const env = { PATH: `${bench.path('bin')}:/usr/bin:/bin` }
    const watchdog = bench.start('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'watchdog', '4000'], env)
    watchdog.type(`watch ${command.pid} ${startOf(command.pid)}\n`)
    const toldAt = performance.now()
    watchdog.end()
    expect((await command.done).signal).toBe('SIGKILL')
    expect(performance.now() - toldAt).toBeGreaterThan(4000)
    expect(readFileSync(bench.path('naps'), 'utf8').split('\n').length).toBeLessThan(20)
    await watchdog.done
  },
)

describe.runIf(process.platform === 'linux')('where sleep takes no fractions of a second', () => {
  /** A watchdog whose `sleep` is as strict as POSIX, and records what it is asked for. */
  function strictWatchdog(bench: Bench) {
    mkdirSync(bench.path('bin'))
    const sleep = `#!/bin/sh
      echo "$1 $$" >>'${bench.path('naps')}'
      case $1 in *[!0-9]*) exit 2 ;; esac
      exec /bin/sleep "$1"`
    writeFileSync(`${bench.path('bin')}/sleep`, sleep, { mode: 0o755 })
    const env = { PATH: `${bench.path('bin')}:/usr/bin:/bin` }
    const watchdog = bench.start('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'watchdog', '0'], env)
    const naps = (): { seconds: string; pid: number }[] =>
      (existsSync(bench.path('naps')) ? readFileSync(bench.path('naps'), 'utf8') : '')
        .split('\n')
        .slice(0, -1)
        .map((line) => line.split(' '))
        .map(([seconds = '', pid]) => ({ seconds, pid: Number(pid) }))
    return { watchdog, nap: (seconds: string) => naps().find((each) => each.seconds === seconds) }
  }

  test('the watchdog waits for whole seconds, and no longer than it has to', async () => {
    const bench = new Bench()
    const command = new Running(spawn('sleep', ['600'], { detached: true }))
    const { watchdog, nap } = strictWatchdog(bench)
    watchdog.type(`watch ${command.pid} ${startOf(command.pid)}\nalive 329.700\n`)
    await until('the first nap', () => !isRunning(command.pid) || nap('329'))
    watchdog.type('alive 328.200\n')
    await until('the second nap', () => !isRunning(command.pid) || nap('328'))
    expect(isRunning(command.pid)).toBe(true)
    await until('the first nap is over', () => !isRunning(nap('329')?.pid ?? 0))
    watchdog.type('alive 0.400\n')
    await command.done
    expect(nap('1')).toBeDefined()
    await until('the second nap is over', () => !isRunning(nap('328')?.pid ?? 0))
    watchdog.type('done\n')
    expect((await watchdog.done).code).toBe(0)
  })
})
