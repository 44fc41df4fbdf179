import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { Bench, type Running, until } from './processes.js'
import { commandOf, hasScript, inTerminal, isRestored, Tmux } from './terminal.js'

const CRASH = fileURLToPath(new URL('crash.cjs', import.meta.url))

/** `quiet` is held; `busy` is held, and two wait for it. */
async function contended(bench: Bench): Promise<void> {
  const holders = ['a quiet one', 'busy'].map((name) => bench.script(name, [], 'echo inside; read end'))
  for (const holder of holders) await holder.wrote(/inside/)
  for (const _each of [1, 2]) bench.script('busy', [], 'exit 0')
  await until('two waiters', async () => {
    const lines = await bench.lines()
    return lines.find(({ name }) => name === 'busy')?.waiters.length === 2
  })
}

test('where the output is no terminal, top prints one table, the contended first, and ends', async () => {
  const bench = new Bench()
  await contended(bench)
  const { code, stdout } = await bench.holdfast(['top']).done
  const [headings = '', ...rows] = stdout.trimEnd().split('\n')
  expect(code).toBe(0)
  expect(headings).toMatch(/^RESOURCE +HELD +WAIT +LONGEST WAIT +HELD FOR +HOLDER +LABEL$/)
  expect(rows.map((row) => row.split(/\s{2,}/).slice(0, 3))).toEqual([
    ['busy', 'yes', '2'],
    ['a quiet one', 'yes', '0'],
  ])
  expect(stdout).not.toContain('\u001b')
})

test('top --json prints a document for each look, until a signal ends it', async () => {
  const bench = new Bench()
  await contended(bench)
  const top = bench.holdfast(['top', '--json', '--interval', '100ms', '--prefix', 'b'])
  await until('three documents', () => top.stdout.split('\n').length > 3)
  top.kill('SIGTERM')
  const { code, stdout } = await top.done
  expect(code).toBe(143)
  const documents = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const each of documents)
    expect(each).toMatchObject({ held: 1, waiting: 2, resources: [{ name: 'busy', kind: 'lock' }] })
  const times = documents.map(({ asOf }) => Date.parse(asOf))
  expect(times.every((time, index) => index === 0 || time - (times[index - 1] ?? 0) >= 99)).toBe(true)
})

test('top --json ends when nobody reads any more', async () => {
  const bench = new Bench()
  const top = `${commandOf(['top', '--json', '--interval', '100ms'])} | head -n 1`
  const { code, stdout } = await bench.start('/bin/sh', ['-c', top]).done
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ held: 0, waiting: 0, resources: [] })
})

test('wrong options of top and watch are refused', async () => {
  const bench = new Bench()
  for (const args of [['top', 'name'], ['top', '--interval', '1ms'], ['top', '--interval', 'x'], ['watch']])
    expect((await bench.holdfast(args).done).code).toBe(64)
  const gone = ['--store', 'sqlite:/nowhere/at/all/locks.db']
  for (const args of [
    ['top', ...gone],
    ['top', '--json', ...gone],
    ['watch', 'a', ...gone],
  ])
    expect((await bench.holdfast(args).done).code).toBe(64)
})

describe.skipIf(!hasScript())('top in a terminal (needs script of util-linux)', () => {
  async function shown(bench: Bench, env: NodeJS.ProcessEnv = {}): Promise<{ top: Running; pid: number }> {
    const top = inTerminal(bench, ['top', '--interval', '100ms'], env)
    const pid = Number((await top.wrote(/pid (\d+)/))[1])
    await top.wrote(/\d+ held/)
    return { top, pid }
  }

  test.each([
    ['q', 'q'],
    ['Ctrl-C', '\u0003'],
  ])('%s ends it with 0, and the terminal is as before', async (_name, key) => {
    const bench = new Bench()
    await contended(bench)
    const { top } = await shown(bench)
    await top.wrote(/2 held, 2 waiting/)
    expect(top.stdout).toContain('\u001b[?1049h')
    top.type(key)
    await top.wrote(/over/)
    expect(top.stdout).toMatch(/code 0\r/)
    expect(isRestored(top.stdout)).toBe(true)
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
    // An error that nobody catches.
    ['SIGUSR2', 1],
  ] as const)('after %s the terminal is as before', async (signal, code) => {
    const bench = new Bench()
    const { top, pid } = await shown(bench, { NODE_OPTIONS: `--require ${CRASH}` })
    process.kill(pid, signal)
    await top.wrote(/over/)
    expect(Number(/code (\d+)/.exec(top.stdout)?.[1])).toBe(code)
    expect(isRestored(top.stdout)).toBe(true)
  })

  test('names and labels cannot write to the terminal', async () => {
    const bench = new Bench()
    const holder = bench.script('a\u001b[31mred', ['--label', 'x\u009b2Jy\u202e'], 'echo inside; read end')
    await holder.wrote(/inside/)
    const { top } = await shown(bench)
    await top.wrote(/a\\u001b\[31mred/)
    top.type('q')
    await top.wrote(/over/)
    expect(top.stdout).not.toContain('\u001b[31m')
    expect(top.stdout).not.toContain('\u009b')
    expect(top.stdout).not.toContain('\u202e')
  })
})

describeOn('tmux', 'top in tmux', () => {
  test('redraws in place when the line changes, and when the window gets another size', async () => {
    const bench = new Bench()
    await contended(bench)
    const names = Array.from({ length: 12 }, (_, index) => `resource ${'x'.repeat(60)} ${index}`)
    for (const name of names) await bench.script(name, [], 'echo inside; read end').wrote(/inside/)
    const window = new Tmux(bench, commandOf(['top', '--interval', '100ms']), 100, 30)
    const full = await window.shows(/14 held, 2 waiting/)
    expect(full.findIndex((line) => line.startsWith('busy'))).toBe(3)
    expect(full).toHaveLength(3 + 14)
    const holder = bench.script('z', [], 'echo inside; read end')
    await holder.wrote(/inside/)
    await window.shows(/15 held/)
    holder.type('\n')
    await window.shows(/14 held/)
    // Nothing of the row that is gone stays behind.
    expect(window.lines()).toHaveLength(3 + 14)
    window.resize(40, 8)
    const small = await until('a small window', () => {
      const lines = window.lines()
      return lines.length === 8 && lines[3]?.startsWith('busy') ? lines : null
    })
    expect(small.every((line) => line.length <= 40)).toBe(true)
    window.type('j')
    await until('the second row first', () => !window.lines()[3]?.startsWith('busy'))
    window.type('g')
    await until('the first row first', () => window.lines()[3]?.startsWith('busy'))
    window.type('q')
    await window.shows(/^code 0$/m)
  })

  test('that is scrolled to its end shows what is left when the list gets shorter', async () => {
    const bench = new Bench()
    const locks = await Holdfast.open(bench.store)
    onTestFinished(() => locks.close({ drain: 0 }))
    const names = Array.from({ length: 20 }, (_, index) => `resource ${String(index).padStart(2, '0')}`)
    const holds = await Promise.all(names.map((name) => locks.mutex(name).acquire({ lease: '5m' })))
    const window = new Tmux(bench, commandOf(['top', '--interval', '100ms']), 100, 8)
    await window.shows(/20 held/)
    for (const _each of [1, 2, 3, 4]) window.type('Space')
    await window.shows(/resource 19/)
    await Promise.all(holds.slice(2).map((hold) => hold.release()))
    const lines = await window.shows(/2 held/)
    expect(lines.slice(3).map((line) => line.split(/\s{2,}/)[0])).toEqual(['resource 00', 'resource 01'])
    window.type('q')
    await window.shows(/^code 0$/m)
  })
})

describeOn('redis', 'top on a server that fails', () => {
  test('top --json says so once, and goes on when it is back', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const bench = new Bench()
    bench.env['HOLDFAST_STORE'] = server.url
    const top = bench.holdfast(['top', '--json', '--interval', '100ms'])
    await until('a document', () => top.stdout.includes('\n'))
    server.pause()
    await until('a failure', () => /did not answer within/.test(top.stderr))
    const seen = top.stdout.length
    server.resume()
    await until('the next document', () => top.stdout.length > seen)
    expect(top.stderr).toContain('the store answers again')
    top.kill('SIGTERM')
    expect((await top.done).code).toBe(143)
    expect(top.stderr.match(/did not answer within/g)).toHaveLength(1)
  })

  describeOn('tmux', 'in tmux', () => {
    test('says so, keeps what it saw, and goes on when it is back', async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      const bench = new Bench()
      bench.env['HOLDFAST_STORE'] = server.url
      const locks = new Holdfast(redis(server.url))
      onTestFinished(() => locks.close({ drain: 0 }))
      await locks.mutex('door').acquire({ lease: '5m', label: 'me' })
      const window = new Tmux(bench, commandOf(['top', '--interval', '100ms']), 100, 12)
      await window.shows(/1 held, 0 waiting[\s\S]*door/)
      server.pause()
      const troubled = await window.shows(/did not answer within/)
      expect(troubled.join('\n')).toMatch(/door +yes/)
      server.resume()
      await window.shows(/1 held, 0 waiting[\s\S]*door/)
      window.type('q')
      await window.shows(/^code 0$/m)
    })
  })
})
