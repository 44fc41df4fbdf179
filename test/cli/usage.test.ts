import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench } from './processes.js'

test('--help shows the commands, examples, exit codes and HOLDFAST_STORE', async () => {
  const { code, stdout } = await new Bench().holdfast(['--help']).done
  expect(code).toBe(0)
  for (const part of [
    'holdfast run',
    'holdfast ls',
    'holdfast break',
    'holdfast doctor',
    'holdfast schema',
    'holdfast serve',
    'Examples:',
    'HOLDFAST_STORE',
    '75',
    '76',
  ])
    expect(stdout).toContain(part)
})

test.each(['run', 'ls', 'top', 'watch', 'break', 'doctor', 'serve'])(
  '%s --help has usage, examples, exit codes and HOLDFAST_STORE',
  async (command) => {
    const bench = new Bench()
    const asked = [
      [command, '--help'],
      [command, '-h'],
      ['help', command],
    ]
    const texts = await Promise.all(asked.map(async (args) => (await bench.holdfast(args).done).stdout))
    expect(new Set(texts).size).toBe(1)
    for (const part of [`holdfast ${command}`, 'Examples:', 'Exit codes:', 'HOLDFAST_STORE'])
      expect(texts[0]).toContain(part)
  },
)

test('help fits in a terminal of 100 columns', async () => {
  const bench = new Bench()
  for (const command of ['', 'run', 'ls', 'top', 'watch', 'break', 'doctor', 'schema', 'serve']) {
    const args = command === '' ? ['--help'] : [command, '--help']
    const { stdout } = await bench.holdfast(args).done
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
  }
})

test.each(['frob', 'constructor'])('help of the unknown command %s is the general one', async (command) => {
  const general = await new Bench().holdfast(['--help']).done
  expect(await new Bench().holdfast(['help', command]).done).toEqual(general)
})

test('--help after -- belongs to the command', async () => {
  const { code, stdout } = await new Bench().holdfast(['run', 'a', '--', 'printf', '%s', '--help']).done
  expect({ code, stdout }).toEqual({ code: 0, stdout: '--help' })
})

test('--version is the version of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  const { code, stdout } = await new Bench().holdfast(['--version']).done
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${version}\n` })
})

test('no arguments: the help, on stderr, as wrong usage', async () => {
  const { code, stdout, stderr } = await new Bench().holdfast([]).done
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
  expect(stderr).toContain('Usage:')
})

test.each([
  [['frob'], /unknown command 'frob'.*holdfast --help/],
  [['--frob'], /unknown option '--frob'/],
  [['toString'], /unknown command/],
  [['run'], /NAME.*missing.*holdfast run --help/],
  [['run', 'a'], /command is missing/],
  [['run', 'a', '--'], /command is missing/],
  [['run', 'a', 'true'], /put -- between/],
  [['run', 'a', 'b', '--', 'true'], /one NAME/],
  [['run', '', '--', 'true'], /name/i],
  [['run', 'a', '--frob', '--', 'true'], /unknown option '--frob'.*holdfast run --help/],
  [['run', 'a', '--wait', '--', 'true'], /--wait/],
  [['run', 'a', '--wait', '10', '--', 'true'], /--wait is '10'.*30s/],
  [['run', 'a', '--lease', '-1s', '--', 'true'], /--lease/],
  [['run', 'a', '--lease=-1s', '--', 'true'], /--lease is '-1s'/],
  [['run', 'a', '--lease', '0s', '--', 'true'], /lease/],
  [['run', 'a', '--grace', 'soon', '--', 'true'], /--grace is 'soon'/],
  [['run', 'a', '--try', '--wait', '1s', '--', 'true'], /--try.*--wait/],
  [['run', 'a', '--store', 'nosuch:x', '--', 'true'], /nosuch:x.*sqlite:/],
  [['run', 'a', '--store', 'memory:', '--', 'true'], /memory:.*one process/],
  [['ls', 'a'], /--prefix 'a'/],
  [['ls', '--space', ''], /space/i],
  [['break'], /NAME.*missing/],
  [['break', 'a', '--fence', '1e3'], /--fence is '1e3'/],
])('wrong usage %j: 64 and one line', async (args, message) => {
  const { code, stdout, stderr } = await new Bench().holdfast(args).done
  expect(stderr).toMatch(message)
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
  expect(stderr).toMatch(/^holdfast: [^\n]+\n$/)
})

test('HOLDFAST_DEBUG=1 adds the stack', async () => {
  const { code, stderr } = await new Bench().holdfast(['frob'], { HOLDFAST_DEBUG: '1' }).done
  expect(code).toBe(64)
  expect(stderr).toMatch(/\n\s+at /)
})

test('of the warnings, only the one about SQLite is dropped', async () => {
  const script = `
    import { hideSqliteWarning } from './dist/cjs/cli/warnings.js'
    hideSqliteWarning()
    process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
    process.emitWarning('Something else is experimental', 'ExperimentalWarning')
    process.emitWarning('SQLite is getting old', { type: 'DeprecationWarning' })`
  const { stderr } = await new Bench().node(['--input-type=module', '-e', script]).done
  expect(stderr).not.toContain('SQLite is an experimental')
  expect(stderr).toContain('Something else is experimental')
  expect(stderr).toContain('SQLite is getting old')
})
