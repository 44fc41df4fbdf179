import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench, isRunning, killAfterwards, stateOf, until } from './processes.js'

/** Says its pid, then each signal that it gets. */
const LISTENER = `
  for name in INT TERM HUP QUIT USR1 USR2 ALRM WINCH; do trap "echo got $name" $name; done
  echo "ready $$"
  while :; do sleep 0.05; done`

test('signals are passed on to the command', async () => {
  const running = new Bench().script('a', [], LISTENER)
  killAfterwards(Number((await running.wrote(/ready (\d+)/))[1]))
  for (const name of ['INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2', 'ALRM', 'WINCH']) {
    running.kill(`SIG${name}` as NodeJS.Signals)
    await running.wrote(new RegExp(`got ${name}`))
  }
})

test("a signal reaches the command's whole process group, and its end by it is reported", async () => {
  const running = new Bench().script('a', [], 'sleep 60 & echo "child $!"; wait')
  const child = killAfterwards(Number((await running.wrote(/child (\d+)/))[1]))
  running.kill('SIGTERM')
  expect((await running.done).code).toBe(143)
  expect(isRunning(child)).toBe(false)
})

test('a command that handles the signal decides its exit code', async () => {
  const running = new Bench().script('a', [], 'trap "exit 9" INT; echo ready; while :; do sleep 0.05; done')
  await running.wrote(/ready/)
  running.kill('SIGINT')
  expect((await running.done).code).toBe(9)
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s while waiting: out of the line, %i, without running the command', async (signal, code) => {
  const bench = new Bench()
  const holder = bench.script('a', [], 'echo inside; read end')
  await holder.wrote(/inside/)
  const waiter = bench.script('a', [], 'echo ran')
  await until('a waiter', async () => (await bench.lines())[0]?.waiters[0]?.pid === waiter.pid)
  waiter.kill(signal)
  expect(await waiter.done).toEqual({ code, signal: null, stdout: '', stderr: '' })
  expect((await bench.lines())[0]?.waiters).toEqual([])
  holder.type('\n')
  expect((await holder.done).code).toBe(0)
})

test('Ctrl-Z stops the command too; both go on together', async () => {
  const bench = new Bench()
  const running = bench.script('a', [], 'echo "command $$"; read line; echo "read $line"')
  const command = killAfterwards(Number((await running.wrote(/command (\d+)/))[1]))
  running.kill('SIGTSTP')
  await until('both stopped', () => stateOf(running.pid) === 'T' && stateOf(command) === 'T')
  running.kill('SIGCONT')
  await until('both going on', () => stateOf(running.pid) !== 'T' && stateOf(command) !== 'T')
  running.type('hello\n')
  expect(await running.done).toMatchObject({ code: 0, stdout: expect.stringContaining('read hello') })
})

test('Ctrl-Z for longer than the lease: the command does not go on without the lock', async () => {
  const bench = new Bench()
  const script = 'echo "command $$"; read line; echo "read $line"'
  const running = bench.script('a', ['--lease', '3s', '--grace', '200ms'], script)
  const command = killAfterwards(Number((await running.wrote(/command (\d+)/))[1]))
  running.kill('SIGTSTP')
  const next = bench.script('a', [], 'echo mine')
  expect((await next.done).stdout).toBe('mine\n')
  await until('the command has ended', () => !isRunning(command))
  running.kill('SIGCONT')
  const { code, stdout } = await running.done
  expect({ code, stdout }).toEqual({ code: 76, stdout: `command ${command}\n` })
})

const hasTerminal = existsSync('/usr/bin/script') && process.platform === 'linux'

// `script` makes a pseudo-terminal, as a terminal emulator does.
test.skipIf(!hasTerminal)(
  'in a terminal: the command reads from it, and Ctrl-C reaches the command',
  async () => {
    const bench = new Bench()
    const command = `exec ${process.execPath} dist/cjs/cli/main.js run a -- sh -c 'trap "echo interrupted; exit 5" INT; read line; echo "read $line"; while :; do sleep 0.05; done'`
    const running = bench.start('/usr/bin/script', ['-qec', command, '/dev/null'], { SHELL: '/bin/sh' })
    await until('the lock', async () => (await bench.lines()).length === 1)
    running.type('hello\n')
    await running.wrote(/read hello/)
    running.type('\u0003')
    await running.wrote(/interrupted/)
    expect((await running.done).code).toBe(5)
  },
)
