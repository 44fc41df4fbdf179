import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench, isRunning, killAfterwards, type Running, until } from './processes.js'

/** A robbed holder learns it at its next renewal at the latest. No lease ends because the machine stands still for a moment. */
const QUICK = ['--lease', '15s']

/** The pids that a script has written as "name pid". */
async function pidOf(running: Running, name: string): Promise<number> {
  return killAfterwards(Number((await running.wrote(new RegExp(`${name} (\\d+)`)))[1]))
}

test('break: the command gets SIGTERM, holdfast ends with 76', async () => {
  const bench = new Bench()
  const script = 'trap "echo cleaned up; exit 0" TERM; echo "command $$"; while :; do sleep 0.05; done'
  const running = bench.script('a', [...QUICK, '--label', 'nightly'], script)
  await pidOf(running, 'command')
  const broken = await bench.holdfast(['break', 'a']).done
  expect(broken.code).toBe(0)
  expect(broken.stdout).toMatch(
    new RegExp(`^Broke 'a': taken from .*:${running.pid}, nightly\\), fence \\d+`),
  )
  const { code, stdout, stderr } = await running.done
  expect(code).toBe(76)
  expect(stdout).toContain('cleaned up')
  expect(stderr).toMatch(/^holdfast: The hold of 'a' was lost[^\n]*; the command is ended\n/m)
})

test('a command that ignores SIGTERM is killed after the grace, with its children', async () => {
  const bench = new Bench()
  const script = 'trap "" TERM; sleep 60 & echo "child $!"; echo "command $$"; while :; do sleep 0.05; done'
  const running = bench.script('a', [...QUICK, '--grace', '400ms'], script)
  const [command, child] = [await pidOf(running, 'command'), await pidOf(running, 'child')]
  const brokenAt = performance.now()
  await bench.holdfast(['break', 'a']).done
  expect((await running.done).code).toBe(76)
  expect(performance.now() - brokenAt).toBeGreaterThan(400)
  expect([command, child].map(isRunning)).toEqual([false, false])
})

test.runIf(process.platform === 'linux')('also what moved to a process group of its own', async () => {
  const bench = new Bench()
  const running = bench.script('a', QUICK, 'timeout 60 sleep 60 & echo "timeout $!"; wait')
  const moved = await pidOf(running, 'timeout')
  await bench.holdfast(['break', 'a']).done
  expect((await running.done).code).toBe(76)
  expect(isRunning(moved)).toBe(false)
})

test('what a command leaves behind is ended before the lock is given back; the exit code stays', async () => {
  const bench = new Bench()
  const script =
    '(trap "echo told; exit" TERM; echo ready; while :; do sleep 0.05; done) & echo "left $!"; read go; exit 4'
  const running = bench.script('a', [], script)
  const left = await pidOf(running, 'left')
  await running.wrote(/ready/)
  running.type('\n')
  const { code, stdout, stderr } = await running.done
  expect(code).toBe(4)
  expect(stdout).toContain('told')
  expect(stderr).toMatch(/^holdfast: the command has ended; ending the processes that it left behind\n/m)
  expect(isRunning(left)).toBe(false)
})

test('messages that nobody reads any more: the exit code stays, and the lock is given back', async () => {
  const bench = new Bench()
  const running = bench.script('a', [], 'sleep 60 & echo "left $!"; read go; exit 4')
  const left = await pidOf(running, 'left')
  running.closeStderr()
  running.type('\n')
  expect((await running.done).code).toBe(4)
  expect(isRunning(left)).toBe(false)
  expect(await bench.lines()).toEqual([])
})

test('the next in line starts only when nothing that the last command left behind runs', async () => {
  const bench = new Bench()
  const log = bench.path('log')
  const script = `(trap "" TERM; while :; do echo left >>${log}; sleep 0.01; done) & echo "left $!"; read go`
  const running = bench.script('a', ['--grace', '300ms'], script)
  await pidOf(running, 'left')
  const next = bench.script('a', [], `echo next >>${log}; sleep 0.2`)
  await until('a waiter', async () => (await bench.lines())[0]?.waiters.length === 1)
  running.type('\n')
  expect((await running.done).code).toBe(0)
  expect((await next.done).code).toBe(0)
  expect(readFileSync(log, 'utf8')).toMatch(/^(left\n)+next\n$/)
})
