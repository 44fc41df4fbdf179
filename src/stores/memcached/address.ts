import { invalid } from '../../base/errors.js'
import { unknownOption } from '../../base/options.js'
import type { MemcachedLogin } from '../../drivers/memcached/index.js'

/** Where a URL leads. */
export interface MemcachedUrl {
  readonly servers: string
  readonly login: MemcachedLogin | undefined
  readonly options: Readonly<Record<string, string>>
}

const OPTIONS = ['prefix', 'retention', 'timeout', 'tls']
const EXAMPLE = 'memcached://user:password@host1:11211,host2:11211'

/** `//user:password@host1:11211,host2:11211?prefix=locks&retention=1m&timeout=1.5s&tls=true`. */
export function parseMemcachedUrl(rest: string): MemcachedUrl {
  // The text itself is not shown: it may hold a password.
  const match = /^\/\/(?:([^@/]*)@)?([^/?#@]+)\/?(?:\?([^#]*))?$/.exec(rest)
  if (!match) throw invalid(`This is not a memcached URL; write ${EXAMPLE}`)
  const [, user, servers = '', query = ''] = match
  const options: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (!OPTIONS.includes(name)) throw invalid(`In the URL of memcached: ${unknownOption(name, OPTIONS)}`)
    options[name] = value
  }
  return { servers, login: user === undefined ? undefined : parseLogin(user), options }
}

function parseLogin(text: string): MemcachedLogin {
  const [user = '', password] = text.split(/:(.*)/s)
  if (password === undefined)
    throw invalid(`The URL of memcached has a user, but no password; write ${EXAMPLE}`)
  return { user: decoded(user), password: decoded(password) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('The URL of memcached has a stray % in it; write %25 for it')
  }
}
