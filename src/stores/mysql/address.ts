import { invalid } from '../../base/errors.js'
import { unknownOption } from '../../base/options.js'
import { checkPackage as checkPackageOf } from '../shared/packages.js'

export type PackageName = 'mysql2' | 'mariadb'

/** In the order in which they are tried. */
const PACKAGES: readonly PackageName[] = ['mysql2', 'mariadb']

/** Where a URL leads. */
export interface MysqlAddress {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  readonly tls: boolean
  readonly driver: PackageName | undefined
  readonly prefix: string | undefined
  readonly connections: number | undefined
}

const EXAMPLE = 'mysql://user:password@localhost:3306/app'
const OPTIONS = ['driver', 'prefix', 'connections', 'ssl']

/**
 * `mysql://user:password@host:port/database?ssl=true&driver=mariadb&prefix=locks&connections=10`;
 * `mariadb:` means the same.
 */
export function parseAddress(text: string): MysqlAddress {
  const url = URL.canParse(text) ? new URL(text) : null
  // The text itself is not shown: it may hold a password.
  if (!url || !/^(mysql|mariadb):$/.test(url.protocol) || url.hostname === '')
    throw invalid(
      `This is not a MySQL URL; write ${EXAMPLE}, with the user name and password percent-encoded`,
    )
  const database = decoded(url.pathname.slice(1))
  if (database === '') throw invalid(`The URL of MySQL names no database; write ${EXAMPLE}`)
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || 3306),
    user: decoded(url.username),
    password: decoded(url.password),
    database,
    ...parseOptions(url.searchParams),
  }
}

export function checkPackage(name: unknown): PackageName {
  return checkPackageOf(name, PACKAGES)
}

function parseOptions(
  options: URLSearchParams,
): Pick<MysqlAddress, 'driver' | 'prefix' | 'connections' | 'tls'> {
  for (const name of options.keys())
    if (!OPTIONS.includes(name)) throw invalid(`In the URL of MySQL: ${unknownOption(name, OPTIONS)}`)
  const driver = options.get('driver')
  const connections = options.get('connections')
  return {
    driver: driver === null ? undefined : checkPackage(driver),
    prefix: options.get('prefix') ?? undefined,
    connections: connections === null ? undefined : Number(connections),
    tls: isYes(options.get('ssl') ?? 'false'),
  }
}

function isYes(text: string): boolean {
  if (text !== 'true' && text !== 'false')
    throw invalid(`ssl is '${text}', but must be true or false; give certificates in the option tls`)
  return text === 'true'
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('The URL of MySQL has a stray % in it; write %25 for it')
  }
}
