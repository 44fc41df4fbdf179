import { invalid } from '../../base/errors.js'
import { nearestName, unknownOption } from '../../base/options.js'
import { checkPackage, type PackageName } from './packages.js'

/** Our own parameters of a URL, and the rest of it for the driver. */
export interface UrlParts {
  readonly url: string
  readonly driver?: PackageName
  readonly connections?: number
  readonly schema?: string
  readonly listen?: boolean | string
}

const OPTIONS = ['driver', 'connections', 'schema', 'listen']
const EXAMPLE = 'postgres://user:password@host:5432/database'

/**
 * Takes our own parameters out of a URL. The driver gets all others: several hosts, `sslmode`,
 * settings of the session. A likely misspelling of ours is refused, because the driver might ignore
 * it.
 */
export function readUrl(text: string): UrlParts {
  if (!/^postgres(ql)?:\/\//i.test(text))
    throw invalid(`'${text.replace(/:[^:@/]*@/, ':…@')}' is not a PostgreSQL URL; write ${EXAMPLE}`)
  const [address = '', query = ''] = text.split(/\?(.*)/s)
  const parameters = new URLSearchParams(query)
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? undefined
    parameters.delete(name)
    return value
  }
  const driver = take('driver')
  const connections = take('connections')
  const schema = take('schema')
  const listen = take('listen')
  if (listen !== undefined && !/^(true|false|postgres(ql)?:.*)$/i.test(listen))
    throw invalid(`listen is '${listen}' in the URL, but must be true, false or the URL of the server itself`)
  for (const name of parameters.keys())
    if (nearestName(name, OPTIONS) !== undefined)
      throw invalid(`In the URL of PostgreSQL: ${unknownOption(name, OPTIONS)}`)
  const rest = parameters.toString()
  return {
    url: rest === '' ? address : `${address}?${rest}`,
    ...(driver === undefined ? {} : { driver: checkPackage(driver) }),
    ...(connections === undefined ? {} : { connections: Number(connections) }),
    ...(schema === undefined ? {} : { schema }),
    ...(listen === undefined ? {} : { listen: listen === 'true' || (listen !== 'false' && listen) }),
  }
}
