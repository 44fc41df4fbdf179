import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { describeStore } from '../../src/cli/store.js'
import { Bench, until } from './processes.js'

test('an empty store: ls says so, ls --json is an empty array, break ends with 1', async () => {
  const bench = new Bench()
  const empty = await bench.holdfast(['ls', '--space', 'shop', '--prefix', 'order:']).done
  expect(empty.code).toBe(0)
  expect(empty.stdout).toMatch(
    /^Nothing is held and nobody waits under the prefix 'order:' in the space 'shop' of sqlite:.*locks\.db\.\nTo list every space: holdfast ls --all-spaces\n$/,
  )
  expect(await bench.lines()).toEqual([])
  expect(await bench.holdfast(['break', 'a']).done).toMatchObject({
    code: 1,
    stdout: "'a' is not held: nothing to break.\n",
  })
})

test('ls --all-spaces shows every space', async () => {
  const bench = new Bench()
  const holders = ['shop', 'office'].map((space) =>
    bench.script('door', ['--space', space], 'echo in; read end'),
  )
  for (const holder of holders) await holder.wrote(/in/)
  const { stdout } = await bench.holdfast(['ls', '--all-spaces']).done
  const [headings = '', ...rows] = stdout.trimEnd().split('\n')
  expect(headings).toMatch(/^SPACE +RESOURCE +STATE/)
  expect(rows.map((row) => row.split(/\s{2,}/).slice(0, 3))).toEqual([
    ['office', 'door', 'holds'],
    ['shop', 'door', 'holds'],
  ])
  const listed = JSON.parse((await bench.holdfast(['ls', '--all-spaces', '--json']).done).stdout)
  expect(listed).toMatchObject([
    { space: 'office', name: 'door' },
    { space: 'shop', name: 'door' },
  ])
  expect(await bench.holdfast(['ls', '--all-spaces', '--space', 'shop']).done).toMatchObject({ code: 64 })
})

test.each([
  ['redis://user:secret@host:6379/1?driver=redis', 'redis://host:6379/1'],
  ['redis+sentinel://user:secret@a:1,b:2/main?replicas=1', 'redis+sentinel://a:1,b:2/main'],
  ['postgres://host/app?listen=postgres://user:secret@host/app', 'postgres://host/app'],
  ['sqlite:/var/lib/a@b.db', 'sqlite:/var/lib/a@b.db'],
  [
    'quorum:redis://:secret@a:1?prefix=p,sqlite:b.db,redis://user:secret@c:3',
    'quorum:redis://a:1,sqlite:b.db,redis://c:3',
  ],
])('%s is shown without passwords', (store, shown) => {
  expect(describeStore({ store })).toBe(shown)
})

test('ls shows who holds and who waits, as a table and as JSON', async () => {
  const bench = new Bench()
  const holder = bench.script('order:1', ['--label', 'the holder'], 'echo "fence $HOLDFAST_FENCE"; read end')
  const fence = Number((await holder.wrote(/fence (\d+)/))[1])
  const waiter = bench.script('order:1', [], 'exit 0')
  const other = bench.script('stock', [], 'echo inside; read end')
  await other.wrote(/inside/)
  await until('a waiter', async () => (await bench.lines())[0]?.waiters.length === 1)

  const [resource, ...rest] = JSON.parse(
    (await bench.holdfast(['ls', '--json', '--prefix', 'order:']).done).stdout,
  ) as Awaited<ReturnType<Bench['lines']>>
  expect(rest).toEqual([])
  expect(resource).toMatchObject({
    name: 'order:1',
    holders: [{ host: hostname(), pid: holder.pid, label: 'the holder', fence }],
    waiters: [{ pid: waiter.pid, label: 'sh' }],
  })
  const { since = '', expires = '' } = resource?.holders[0] ?? {}
  expect(new Date(since).toISOString()).toBe(since)
  expect(Date.parse(expires) - Date.parse(since)).toBeGreaterThan(20_000)

  const { stdout } = await bench.holdfast(['ls']).done
  const [headings = '', ...rows] = stdout.trimEnd().split('\n')
  expect(headings).toMatch(/^RESOURCE +STATE +FENCE +OWNER +HOST:PID +LABEL +SINCE +EXPIRES$/)
  expect(rows.map((row) => row.split(/\s{2,}/).slice(0, 2))).toEqual([
    ['order:1', 'holds'],
    ['order:1', 'waits'],
    ['stock', 'holds'],
  ])
  // Aligned: every column of every row starts where its heading does.
  for (const heading of headings.split(/\s+/)) {
    const column = headings.indexOf(heading)
    for (const row of rows) expect(row.slice(column - 1).search(/\S/)).toBe(column === 0 ? 0 : 1)
  }
  expect(rows[0]).toContain(`${hostname()}:${holder.pid}`)
  holder.type('\n')
  other.type('\n')
  await Promise.all([holder.done, waiter.done, other.done])
})

test('names and labels cannot write control characters to the terminal', async () => {
  const bench = new Bench()
  const holder = bench.script('a\u001b[2J', ['--label', 'x\ny\u009b'], 'echo inside; read end')
  await holder.wrote(/inside/)
  const { stdout } = await bench.holdfast(['ls']).done
  expect(stdout).toContain('a\\u001b[2J')
  expect(stdout).toContain('x\\u000ay\\u009b')
  expect(stdout.trimEnd().split('\n')).toHaveLength(2)
  holder.type('\n')
  await holder.done
})

test('break with a fence hits only the hold that has it', async () => {
  const bench = new Bench()
  const holder = bench.script('a', ['--lease', '15s'], 'echo "fence $HOLDFAST_FENCE"; sleep 60')
  const fence = Number((await holder.wrote(/fence (\d+)/))[1])
  const missed = await bench.holdfast(['break', 'a', '--fence', String(fence - 1)]).done
  expect(missed).toMatchObject({
    code: 1,
    stdout: `'a' is not held with fence ${fence - 1}: nothing to break.\n`,
  })
  expect((await bench.lines())[0]?.holders[0]?.fence).toBe(fence)
  const hit = await bench.holdfast(['break', 'a', '--fence', String(fence)]).done
  expect(hit.code).toBe(0)
  expect(hit.stdout).toContain(`fence ${fence}`)
  expect((await holder.done).code).toBe(76)
})

test('a reader that closes the pipe early is no error', async () => {
  const bench = new Bench()
  const main = `${process.execPath} dist/cjs/cli/main.js`
  const { code, stderr } = await bench.start('/bin/sh', ['-c', `${main} ls --help | true`]).done
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test.runIf(process.platform === 'linux')('an output that cannot be written: 70, and one line', async () => {
  const bench = new Bench()
  const main = `${process.execPath} dist/cjs/cli/main.js`
  const { code, stderr } = await bench.start('/bin/sh', ['-c', `${main} doctor >/dev/full`]).done
  expect(stderr).toMatch(/^holdfast: the output cannot be written: ENOSPC[^\n]*\n$/)
  expect(code).toBe(70)
})
