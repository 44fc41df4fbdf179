import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Bench, type Outcome } from './processes.js'
import { hasScript, inTerminal } from './terminal.js'

/** Sets the title of a terminal; colours it; goes to the start of the line. */
const ESCAPES = '\u001b]0;x\u0007 \u009b31m \r.'

/** A memcached server that puts escape sequences into its errors and its version. */
async function hostileServer(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      for (const command of chunk.toString('latin1').split('\r\n').filter(Boolean)) {
        socket.write(`${answerTo(command)}\r\n`, 'latin1')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `memcached://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function answerTo(command: string): string {
  if (command === 'mn') return 'MN'
  return command.startsWith('stats') ? `STAT version 1.6.9 ${ESCAPES}\r\nEND` : `SERVER_ERROR ${ESCAPES}`
}

async function onHostileServer(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return new Bench().holdfast(args, { HOLDFAST_STORE: await hostileServer(), ...env }).done
}

function controlsIn(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
  return text.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g) ?? []
}

test.each([
  [['run', 'a', '--', 'true']],
  [['ls']],
  [['ls', '--json']],
  [['top']],
  [['top', '--json']],
  [['watch', 'a']],
  [['break', 'a']],
])('the error of a server cannot write to the terminal: %j', async (args) => {
  const { stdout, stderr } = await onHostileServer(args)
  expect([controlsIn(stdout), controlsIn(stderr)]).toEqual([[], []])
  expect(stderr).toContain('SERVER_ERROR \\u001b]0;x\\u0007 \\u009b31m')
})

test('nor can its stack', async () => {
  const { stderr } = await onHostileServer(['ls'], { HOLDFAST_DEBUG: '1' })
  expect(controlsIn(stderr)).toEqual([])
  expect(stderr).toMatch(/\n\s+at /)
})

test('nor can a finding of doctor', async () => {
  const { stdout, stderr } = await onHostileServer(['doctor'])
  expect([controlsIn(stdout), stderr]).toEqual([[], ''])
  expect(stdout).toContain('1.6.9 \\u001b]0;x\\u0007 \\u009b31m')
})

test('doctor --json escapes them as JSON does', async () => {
  const { stdout, stderr } = await onHostileServer(['doctor', '--json'])
  expect([controlsIn(stdout), stderr]).toEqual([[], ''])
  const [{ text }] = JSON.parse(stdout) as [{ text: string }]
  expect(text).toContain(`1.6.9 ${ESCAPES}`)
})

describe.skipIf(!hasScript())('top in a terminal (needs script of util-linux)', () => {
  test('shows the error of its first look without escapes', async () => {
    const env = { HOLDFAST_STORE: await hostileServer() }
    const top = inTerminal(new Bench(), ['top', '--interval', '100ms'], env)
    await top.wrote(/memcached refused/)
    top.type('q')
    await top.wrote(/over/)
    expect(top.stdout).toContain('SERVER_ERROR \\u001b')
    for (const control of ['\u001b]', '\u0007', '\u009b']) expect(top.stdout).not.toContain(control)
  })
})
