import { createHash } from 'node:crypto'
import { HoldfastError } from '../../base/errors.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest } from '../../contract/store.js'
import { type ClaimName, claimPrefix, decode, encode, parseClaim } from './names.js'

/** How claims are written into the names of nodes, and where. */
export interface Format {
  /** false: others, who know nothing of Holdfast, use the same line. */
  readonly isOwn: boolean
  /** The node above all lines. */
  linesIn(root: string, space: string): string
  /** The node of a resource, below that. */
  lineName(resource: string): string
  /** The resource of such a node. */
  resourceOf(lineName: string): string
  /** What stands for an id in a name. */
  idInName(id: string): string
  /** A claim's name, up to the number that the server adds. Refuses what cannot be said. */
  prefix(request: Pick<ClaimRequest, 'id' | 'permits' | 'capacity'>): string
  /** null: no claim. */
  parse(name: string): ClaimName | null
}

/** Permits and capacity are in the name, and everything can be done. */
export const OWN_FORMAT: Format = {
  isOwn: true,
  linesIn: (root, space) => `${root}/${encode(space)}/lines`,
  lineName: encode,
  resourceOf: decode,
  idInName: (id) => id,
  prefix: ({ id, permits, capacity }) => claimPrefix(id, permits, capacity),
  parse: parseClaim,
}

/** Curator's locks, Kazoo's (`<32 hex>__lock__`, `__rlock__`), and the number behind them. */
const PEER_NAME = /^(.*?)-?(lock-|__WRIT__|__READ__|__lock__|__rlock__)(-?\d{9,10})$/
const READERS = new Set(['__READ__', '__rlock__'])

/**
 * The names of Curator's `InterProcessMutex` (`lock-`) or `InterProcessReadWriteLock` (`__WRIT__`, `__READ__`), which Kazoo can be told
 * to honour, too. The space is not in the path: a resource is a path below the root.
 */
export function curatorFormat(writer: 'lock-' | '__WRIT__'): Format {
  return {
    isOwn: false,
    linesIn: (root) => root,
    lineName: (resource) => resource,
    resourceOf: (lineName) => lineName,
    idInName: (id) => `_c_${uuidOf(id)}`,
    prefix({ id, permits, capacity }) {
      const isReader = permits !== EXCLUSIVE
      if (capacity !== EXCLUSIVE || (isReader && writer === 'lock-')) throw notShared('this kind of lock')
      return `_c_${uuidOf(id)}-${isReader ? '__READ__' : writer}`
    },
    parse(name) {
      const [, id, kind, number] = PEER_NAME.exec(name) ?? []
      if (id === undefined || kind === undefined) return null
      const permits = READERS.has(kind) ? 1 : EXCLUSIVE
      return { name, id, permits, capacity: EXCLUSIVE, sequence: Number(number), fence: null }
    },
  }
}

export function notShared(what: string): HoldfastError {
  const message = `A line that is shared with Curator or Kazoo cannot have ${what}, because they know nothing of it; use a resource of Holdfast's own`
  return new HoldfastError('UNSUPPORTED', message, { store: 'zookeeper' })
}

/** By this the node is found again whose creation's answer was lost. */
function uuidOf(id: string): string {
  const hex = createHash('sha256').update(id).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}
