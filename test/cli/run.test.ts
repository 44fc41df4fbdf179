import { chmodSync, closeSync, openSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench, until } from './processes.js'

test("the exit code is the command's, and nothing is said", async () => {
  const outcome = await new Bench().script('a', [], 'exit 7').done
  expect(outcome).toEqual({ code: 7, signal: null, stdout: '', stderr: '' })
})

test('a command that dies of a signal: 128 + n', async () => {
  expect((await new Bench().script('a', [], 'kill -KILL $$').done).code).toBe(137)
})

test('the command gets the fence, the resource, its environment and the standard streams', async () => {
  const bench = new Bench()
  const script = 'read line; echo "$HOLDFAST_RESOURCE|$HOLDFAST_FENCE|$line"; echo "$1" >&2; env | grep odd'
  const running = bench.holdfast(['run', 'order 42', '--', '/bin/sh', '-c', script, 'sh', 'to stderr'], {
    'odd.name-1': 'kept',
  })
  running.type('hello\n')
  const { stdout, stderr } = await running.done
  const [resource, fence, line] = stdout.split('\n')[0]?.split('|') ?? []
  expect({ resource, line, stderr }).toEqual({ resource: 'order 42', line: 'hello', stderr: 'to stderr\n' })
  expect(Number.isSafeInteger(Number(fence)) && Number(fence) > 0).toBe(true)
})

test('fences grow from run to run', async () => {
  const bench = new Bench()
  const fences: number[] = []
  for (let i = 0; i < 3; i++)
    fences.push(Number((await bench.script('a', [], 'echo $HOLDFAST_FENCE').done).stdout))
  expect(fences[0]).toBeLessThan(fences[1] ?? 0)
  expect(fences[1]).toBeLessThan(fences[2] ?? 0)
})

test('a command that is not there: 127; that cannot be executed: 126; no lock is taken for either', async () => {
  const bench = new Bench()
  writeFileSync(bench.path('plain'), 'text')
  writeFileSync(bench.path('no-interpreter'), '#!/nosuch/interpreter\n')
  chmodSync(bench.path('no-interpreter'), 0o755)
  const codeOf = async (command: string) => {
    const { code, stderr } = await bench.holdfast(['run', 'a', '--', command]).done
    expect(stderr).toMatch(/^holdfast: [^\n]+\n$/)
    return code
  }
  expect(await codeOf('nosuch-command')).toBe(127)
  expect(await codeOf('/nosuch/command')).toBe(127)
  expect(await codeOf(bench.path('plain'))).toBe(126)
  expect(await codeOf(bench.folder)).toBe(126)
  expect(await codeOf(bench.path('no-interpreter'))).toBe(127)
  expect(await bench.lines()).toEqual([])
})

test('while one runs, --try and a --wait that runs out give 75; afterwards the lock is free', async () => {
  const bench = new Bench()
  const holder = bench.script('a', [], 'echo inside; read end')
  await holder.wrote(/inside/)
  const tried = await bench.script('a', ['--try'], 'echo ran').done
  expect({ code: tried.code, stdout: tried.stdout }).toEqual({ code: 75, stdout: '' })
  expect(tried.stderr).toMatch(/^holdfast: 'a' is held .*holdfast ls, with the same --store and --space\n$/)
  const startedAt = performance.now()
  const waited = await bench.script('a', ['--wait', '300ms'], 'echo ran').done
  expect({ code: waited.code, stdout: waited.stdout }).toEqual({ code: 75, stdout: '' })
  expect(waited.stderr).toContain('300 ms')
  expect(performance.now() - startedAt).toBeGreaterThan(300)
  expect((await bench.script('b', ['--try'], 'exit 0').done).code).toBe(0)
  expect((await bench.script('a', ['--try', '--space', 'other'], 'exit 0').done).code).toBe(0)
  holder.type('\n')
  expect((await holder.done).code).toBe(0)
  expect((await bench.script('a', ['--try'], 'exit 0').done).code).toBe(0)
})

test('waiters are served one after the other, in order', async () => {
  const bench = new Bench()
  const holder = bench.script('a', [], 'echo inside; read end')
  await holder.wrote(/inside/)
  const waiters = []
  for (const number of [1, 2, 3]) {
    waiters.push(bench.script('a', ['--label', String(number)], `echo ${number} >> ${bench.path('order')}`))
    await until(`waiter ${number} in line`, async () => (await bench.lines())[0]?.waiters.length === number)
  }
  holder.type('\n')
  expect(await Promise.all(waiters.map(async (waiter) => (await waiter.done).code))).toEqual([0, 0, 0])
  expect((await bench.start('cat', [bench.path('order')]).done).stdout).toBe('1\n2\n3\n')
})

test('--max-waiters ends with 75 where that many wait already', async () => {
  const bench = new Bench()
  const holder = bench.script('a', [], 'echo inside; read end')
  await holder.wrote(/inside/)
  const waiter = bench.script('a', ['--max-waiters', '1'], 'echo served')
  await until('a waiter in line', async () => (await bench.lines())[0]?.waiters.length === 1)
  const refused = await bench.script('a', ['--max-waiters', '1'], 'echo never').done
  expect(refused).toMatchObject({ code: 75, stdout: '' })
  expect(refused.stderr).toMatch(
    /^holdfast: 'a' is held by another process, and 1 wait for it already [^\n]+\n$/,
  )
  holder.type('\n')
  expect(await waiter.done).toMatchObject({ code: 0, stdout: 'served\n' })
  for (const wrong of [
    ['--max-waiters', '0'],
    ['--max-waiters', 'two'],
    ['--max-waiters', '1', '--try'],
  ])
    expect((await bench.script('a', wrong, 'true').done).code).toBe(64)
})

test('--max-hold ends the command with 76', async () => {
  const { code, stderr } = await new Bench().script('a', ['--max-hold', '300ms'], 'sleep 60').done
  expect(code).toBe(76)
  expect(stderr).toMatch(/^holdfast: The hold of 'a' was lost[^\n]+\n$/)
})

test('a lease shorter than the command is renewed', async () => {
  const { code, stderr } = await new Bench().script('a', ['--lease', '5s'], 'sleep 7; exit 3').done
  expect({ code, stderr }).toEqual({ code: 3, stderr: '' })
})

test.each([
  ['in a folder that is not there', 'sqlite:/nosuch/folder/locks.db'],
  ['in a file that is no database', 'sqlite:package.json'],
])('a store %s: 64 and one line', async (_, store) => {
  const bench = new Bench()
  for (const args of [['run', 'a', '--', 'true'], ['ls'], ['break', 'a']]) {
    const { code, stderr } = await bench.holdfast(args, { HOLDFAST_STORE: store }).done
    expect(stderr).toMatch(/^holdfast: [^\n]+\n$/)
    expect(code).toBe(64)
  }
})

test('a damaged store: 69 and one line, and the command does not run', async () => {
  const bench = new Bench()
  await bench.lines()
  const file = openSync(bench.path('locks.db'), 'r+')
  writeSync(file, 'anything but a table of contents', 100)
  closeSync(file)
  const { code, stdout, stderr } = await bench.script('a', [], 'echo ran').done
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' })
  expect(stderr).toMatch(/^holdfast: [^\n]+\n$/)
})

test('without a store named, one file of the user, in a folder for that user alone', async () => {
  const bench = new Bench()
  const own = { HOLDFAST_STORE: '' }
  const holder = bench.holdfast(['run', 'a', '--', 'sh', '-c', 'echo inside; read end'], own)
  await holder.wrote(/inside/)
  expect(statSync(bench.path('state/holdfast')).mode & 0o777).toBe(0o700)
  expect(statSync(bench.path('state/holdfast/locks.db')).isFile()).toBe(true)
  expect((await bench.holdfast(['run', 'a', '--try', '--', 'true'], own).done).code).toBe(75)

  // A relative XDG_STATE_HOME does not count: the home folder does.
  const elsewhere = { HOLDFAST_STORE: '', XDG_STATE_HOME: 'state' }
  expect((await bench.holdfast(['run', 'a', '--try', '--', 'true'], elsewhere).done).code).toBe(0)
  expect(statSync(bench.path('.local/state/holdfast/locks.db')).isFile()).toBe(true)
})

test('the folder of the default store cannot be made: 69, and what to do', async () => {
  const bench = new Bench()
  writeFileSync(bench.path('file'), '')
  const env = { HOLDFAST_STORE: '', XDG_STATE_HOME: bench.path('file') }
  const { code, stderr } = await bench.holdfast(['ls'], env).done
  expect(code).toBe(69)
  expect(stderr).toMatch(/^holdfast: .*--store or HOLDFAST_STORE\n$/)
})
