import { createHash } from 'node:crypto'
import { invalid } from '../../base/errors.js'

const DEFAULT_PORT = 11_211

export interface MemcachedAddress {
  readonly host: string
  readonly port: number
}

/** Parses `host1:11211,[::1]:11212`. */
export function parseMemcachedServers(servers: string): MemcachedAddress[] {
  const addresses = servers.split(',').map((text) => parseServer(text.trim(), servers))
  const names = addresses.map(({ host, port }) => `${host}:${port}`)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(`The server ${twice} is named twice in '${servers}'`)
  return addresses
}

function parseServer(text: string, servers: string): MemcachedAddress {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:\s@/]+))(?::(\d+))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  const number = port === undefined ? DEFAULT_PORT : Number(port)
  if (host === undefined || number < 1 || number > 65_535)
    throw invalid(
      `'${text}' in '${servers}' is not a server; write host:port, with commas between servers and brackets around IPv6 addresses`,
    )
  return { host, port: number }
}

/**
 * Which of the servers keeps a key, by rendezvous hashing: the order of the list does not matter,
 * and a server that is added or removed moves only its own share of the keys.
 */
export function chooseServer(names: readonly string[], key: string): number {
  let chosen = 0
  let highest = ''
  for (const [index, name] of names.entries()) {
    const weight = names.length === 1 ? '' : createHash('sha1').update(`${name}\0${key}`).digest('hex')
    if (weight <= highest) continue
    highest = weight
    chosen = index
  }
  return chosen
}
