import { invalid } from '../../base/errors.js'
import { unknownOption } from '../../base/options.js'

/** Where a URL leads. */
export interface ServerUrl {
  readonly servers: string
  readonly login: { readonly user: string; readonly password: string } | undefined
  /** `tls` is true or false, all others are as they were written. */
  readonly options: Readonly<Record<string, unknown>>
}

/** What follows `etcd:` in a URL: `//user:password@host1:2379,host2:2379?ttl=10s&tls=true`. */
export function readServerUrl(rest: string, store: string, names: readonly string[]): ServerUrl {
  const [authority = '', query] = rest.replace(/^\/\//, '').split(/\?(.*)/s)
  const at = authority.lastIndexOf('@')
  const options: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (!names.includes(name)) throw invalid(`In the URL of ${store}: ${unknownOption(name, names)}`)
    options[name] = name === 'tls' ? tlsOf(value) : value
  }
  return {
    servers: authority.slice(at + 1).replace(/\/$/, ''),
    login: at < 0 ? undefined : loginOf(authority.slice(0, at), store),
    options,
  }
}

/** The password may contain colons. The text itself is never shown. */
function loginOf(text: string, store: string): ServerUrl['login'] {
  const [user = '', password] = text.split(/:(.*)/s)
  if (password === undefined)
    throw invalid(`The URL of ${store} has a user, but no password; write //user:password@host`)
  try {
    return { user: decodeURIComponent(user), password: decodeURIComponent(password) }
  } catch {
    throw invalid(`The URL of ${store} has a stray % in it; write %25 for it`)
  }
}

function tlsOf(value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true'
  throw invalid(`tls is '${value}', but must be true or false in a URL; give certificates in the option tls`)
}
