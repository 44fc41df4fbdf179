import { invalid } from '../../base/errors.js'
import { unknownOption } from '../../base/options.js'
import { PACKAGES, type PackageName } from './packages.js'

/** Where a URL leads. */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The master's name in the configuration of the Sentinels. */
  readonly master: string
  readonly prefix: string | undefined
  readonly driver: PackageName | undefined
  readonly replicas: number | undefined
  readonly replicaTimeout: string | undefined
  readonly retention: string | undefined
}

/** The options of the store that a URL can carry. */
type UrlOptions = Pick<RedisAddress, 'prefix' | 'driver' | 'replicas' | 'replicaTimeout' | 'retention'>

const KINDS: Readonly<Record<string, RedisAddress['kind']>> = {
  '': 'single',
  sentinel: 'sentinel',
  cluster: 'cluster',
}
const DEFAULT_PORTS = { single: 6379, sentinel: 26379, cluster: 6379 }
const OPTIONS = ['prefix', 'driver', 'replicas', 'replicaTimeout', 'retention']
const EXAMPLES = {
  single: 'redis://user:password@host:6379/0',
  sentinel: 'redis+sentinel://user:password@host1:26379,host2:26379/master-name/0',
  cluster: 'redis+cluster://user:password@host1:6379,host2:6379',
}

/** The `URL` class refuses several hosts, so this parses the text itself. */
export function parseAddress(url: string): RedisAddress {
  refuseOddLogin(url)
  const match = /^redis(s?)(?:\+([a-z]+))?:\/\/(?:([^@/]*)@)?([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(url)
  const kind = KINDS[match?.[2]?.toLowerCase() ?? '']
  if (!match || !kind)
    throw invalid(`'${hidePassword(url)}' is not a Redis URL; write ${Object.values(EXAMPLES).join(', ')}`)
  const [, tls, , user, hosts = '', path = '', query] = match
  const [username, password] = (user ?? '').split(/:(.*)/s)
  const steps = path
    .split('/')
    .slice(1)
    .filter((step) => step !== '')
  const master = kind === 'sentinel' ? steps.shift() : ''
  if (master === undefined) throw invalid(`A Sentinel's URL must name the master; write ${EXAMPLES.sentinel}`)
  if (steps.length > (kind === 'cluster' ? 0 : 1))
    throw invalid(`'${path}' is too long; write ${EXAMPLES[kind]}`)
  return {
    kind,
    nodes: hosts.split(',').map((host) => parseHost(host, DEFAULT_PORTS[kind])),
    tls: tls !== '',
    username: decoded(username),
    password: decoded(password),
    database: parseDatabase(steps[0] ?? '0', kind),
    master: decodeURIComponent(master),
    ...parseOptions(query ?? ''),
  }
}

/** A password with these characters would be taken for a host or a path, and shown in errors. */
function refuseOddLogin(url: string): void {
  const afterScheme = url.slice(url.indexOf('//') + 2)
  if (/@.*@/s.test(afterScheme) || /[/?#].*@/s.test(afterScheme))
    throw invalid(
      'The URL of Redis has an @, / or ? in the wrong place; percent-encode its user name and password (encodeURIComponent)',
    )
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? []
  const number = port === undefined ? defaultPort : Number(port)
  if ((bracketed ?? plain) === undefined || number < 1 || number > 65_535)
    throw invalid(`'${text}' is not a host with a port, such as localhost:6379`)
  return { host: bracketed ?? (plain || 'localhost'), port: number }
}

function parseDatabase(text: string, kind: RedisAddress['kind']): number {
  if (!/^\d{1,5}$/.test(text))
    throw invalid(`'${text}' is not the number of a database; write ${EXAMPLES[kind]}`)
  return Number(text)
}

function parseOptions(query: string): UrlOptions {
  const options = new URLSearchParams(query)
  for (const name of options.keys())
    if (!OPTIONS.includes(name)) throw invalid(`In the URL of Redis: ${unknownOption(name, OPTIONS)}`)
  const driver = options.get('driver') ?? undefined
  return {
    prefix: options.get('prefix') ?? undefined,
    driver: driver === undefined ? undefined : checkPackage(driver),
    replicas: parseReplicas(options.get('replicas')),
    replicaTimeout: options.get('replicaTimeout') ?? undefined,
    retention: options.get('retention') ?? undefined,
  }
}

function parseReplicas(text: string | null): number | undefined {
  if (text === null) return undefined
  if (/^\d{1,5}$/.test(text)) return Number(text)
  throw invalid(`In the URL of Redis: replicas is '${text}', but must be a number, such as 1`)
}

export function checkPackage(name: string): PackageName {
  const known = PACKAGES.find((each) => each === name)
  if (!known) throw invalid(`driver is '${name}', but must be one of ${PACKAGES.join(', ')}`)
  return known
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('The URL of Redis has a stray % in its user name or password; write %25 for it')
  }
}

function hidePassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@')
}
