import { createHash } from 'node:crypto'
import { HoldfastError } from '../../base/errors.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest } from '../../contract/store.js'
import { decode, encode } from '../shared/encoding.js'
import { type ClaimName, claimPrefix, parseClaim } from './names.js'

/** Where the nodes of claims are, and how their names are written. */
export interface NodeFormat {
  /** false: other software, which does not know Holdfast, uses the same lines. */
  readonly isOwn: boolean
  /** The node above all lines. */
  linesIn(root: string, space: string): string
  /** The node of a resource, below that. */
  lineName(resource: string): string
  /** The resource of such a node; null: another application's. */
  resourceOf(lineName: string): string | null
  /** The id as it stands in a name. */
  idInName(id: string): string
  /**
   * A claim's name up to the number that the server adds. Throws for claims that the format does
   * not have.
   */
  prefix(request: Pick<ClaimRequest, 'id' | 'permits' | 'capacity'>): string
  /** null: not a claim. */
  parse(name: string): ClaimName | null
}

/** Our own: permits and capacity stand in the name. */
export const OWN_FORMAT: NodeFormat = {
  isOwn: true,
  linesIn: (root, space) => `${root}/${encode(space)}/lines`,
  lineName: encode,
  resourceOf: decode,
  idInName: (id) => id,
  prefix: ({ id, permits, capacity }) => claimPrefix(id, permits, capacity),
  parse: parseClaim,
}

/**
 * Nodes of Curator and Kazoo (`<32 hex>__lock__`, `__rlock__`), with the number that the server
 * adds.
 */
const PEER_NAME = /^(.*?)-?(lock-|__WRIT__|__READ__|__lock__|__rlock__)(-?\d{9,10})$/
const READERS = new Set(['__READ__', '__rlock__'])

/**
 * The names of Curator's `InterProcessMutex` (`lock-`) or `InterProcessReadWriteLock` (`__WRIT__`,
 * `__READ__`). Kazoo can be configured to respect them. The space is not in the path: a resource is
 * a path below the root.
 */
export function curatorFormat(writer: 'lock-' | '__WRIT__'): NodeFormat {
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

/** Made from the id, so that the node can be found again if the answer to its creation is lost. */
function uuidOf(id: string): string {
  const hex = createHash('sha256').update(id).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}
