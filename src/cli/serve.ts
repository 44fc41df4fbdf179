import { appendFileSync, closeSync, openSync, readFileSync } from 'node:fs'
import type { AuditEntry, DashboardOptions } from '../server/index.js'
import { readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { CliError, say, usageError } from './failures.js'
import { describeStore, openLocks } from './store.js'

const OPTIONS = {
  ...STORE_OPTIONS,
  port: { type: 'string' },
  host: { type: 'string' },
  'token-file': { type: 'string' },
  'allow-changes': { type: 'boolean' },
  'allow-locks': { type: 'boolean' },
  'audit-log': { type: 'string' },
} as const

const DEFAULT_PORT = 8470
const DEFAULT_HOST = '127.0.0.1'

/** Serves the dashboard and the API until a signal ends it. */
export async function serve(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('serve', args, OPTIONS)
  if (positionals.length > 0) throw usageError('serve takes no NAME', 'serve')
  const { dashboard } = await import('../server/index.js')
  const { prometheus } = await import('../observe/prometheus/index.js')
  const { addressesOf, areLoopback, listen } = await import('../server/listen.js')
  const port = parsePort(values.port)
  const token = readToken(values['token-file'])
  const addresses = await addressesOf(values.host ?? DEFAULT_HOST)
  const [host = DEFAULT_HOST] = addresses
  if (token === undefined && !areLoopback(addresses))
    throw usageError(
      `${values.host} (${addresses.join(', ')}) can be reached from other machines: give a token with --token-file or HOLDFAST_TOKEN`,
      'serve',
    )
  const auditLog = values['audit-log'] === undefined ? null : new AuditLog(values['audit-log'])
  const options: DashboardOptions = {
    ...(token === undefined ? { allowLoopback: true } : { token }),
    allowChanges: values['allow-changes'] === true,
    ...(values['allow-locks'] ? { allowLocks: true } : {}),
    audit: (entry) => auditLog?.write(entry),
    metrics: prometheus(),
  }
  const locks = await openLocks(values)
  try {
    const server = await listen(dashboard(locks, options), { host, port }).catch(notListening)
    say(`${describe(options)} ${describeStore(values)} at ${server.url}`)
    await anySignal()
    await server.close()
    return EXIT.ok
  } finally {
    await locks.close({ drain: 0 })
    auditLog?.close()
  }
}

function describe({ token, allowChanges, allowLocks }: DashboardOptions): string {
  const what = allowChanges ? 'shows and changes' : allowLocks ? 'shows and locks' : 'shows'
  return `${token === undefined ? 'without a token, ' : ''}${what}`
}

function parsePort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw usageError(`--port is '${text}', but must be a number from 0 to 65535`, 'serve')
}

/** From a file or the environment: the arguments of a process can be seen by every user. */
function readToken(file: string | undefined): string | undefined {
  if (file === undefined) return process.env['HOLDFAST_TOKEN'] || undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw usageError(`the token file cannot be read: ${(error as Error).message}`, 'serve')
  }
}

function notListening(error: NodeJS.ErrnoException): never {
  const hint = error.code === 'EADDRINUSE' ? 'Choose another with --port' : undefined
  throw new CliError(EXIT.storeUnavailable, `cannot listen: ${error.message}`, hint)
}

function anySignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}

/** One line of JSON for each entry. Opened at the start, so that no change is made unwritten. */
class AuditLog {
  readonly #file: number
  /** On a full disk a part of a line may have been written: the next entry begins a new one. */
  #isTorn = false

  constructor(path: string) {
    try {
      this.#file = openSync(path, 'a', 0o600)
    } catch (error) {
      throw usageError(`the audit log cannot be opened: ${(error as Error).message}`, 'serve')
    }
  }

  write(entry: AuditEntry): void {
    const start = this.#isTorn ? '\n' : ''
    this.#isTorn = true
    appendFileSync(this.#file, `${start}${JSON.stringify(entry)}\n`)
    this.#isTorn = false
  }

  close(): void {
    closeSync(this.#file)
  }
}
