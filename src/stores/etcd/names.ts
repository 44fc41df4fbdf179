import { decode, encode } from '../shared/encoding.js'

/** Where lines and states are kept. */
export interface EtcdNames {
  /** The line's own keys, and those that tell about it, are all from here … */
  lineStart(resource: string): string
  /** … to before this. */
  lineEnd(resource: string): string
  /** The keys of claims begin with this. */
  claims(resource: string): string
  /** Its last change gave fences above those of claims that wait already. */
  jump(resource: string): string
  /** What `resize` set. */
  pin(resource: string): string
  /** All lines begin with this. */
  readonly lines: string
  /** The resource of a key below `lines`; null: it belongs to no line. */
  resourceOf(key: string): string | null
  readonly states: string
  /**
   * The key of one client, which changes when its unanswered requests must not be done any more.
   */
  client(lease: string): string
  readonly space: string
  /** What all spaces begin with; null: there are none in the names of lines. */
  readonly root: string | null
}

export const DEFAULT_ROOT = 'holdfast/'
/** `/` follows it in the order of bytes, so both kinds of keys are one range. */
const ABOUT = '.'
const AFTER_SLASH = '0'
/** What is kept beside shared lines looks like claims, too. */
const BESIDE_LINES = new RegExp(`^${DEFAULT_ROOT}[^/]*/(clients|states)(/|$)`)
/** As etcd's recipe writes them: the lease, and in our keys the number of the attempt. */
const CLAIM = /^[0-9a-f]{1,16}(-[0-9a-f]+)?$/

interface NameRules {
  readonly lines: string
  readonly meta: string
  readonly space: string
  readonly root: string | null
  encode(resource: string): string
  /** null: it is no name of a resource. */
  decode(name: string): string | null
}

/** Our own: `holdfast/SPACE/lines/RESOURCE/LEASE-ATTEMPT`. */
export function ownNames(root: string, space: string): EtcdNames {
  const base = `${root}${encode(space)}/`
  return namesBy({ lines: `${base}lines/`, meta: base, space, root, encode, decode })
}

/** A resource is the very name that `etcdctl lock` is given. */
export function sharedNames(root: string, space: string): EtcdNames {
  const meta = `${DEFAULT_ROOT}${encode(space)}/`
  const own = (name: string): string | null => (BESIDE_LINES.test(`${root}${name}`) ? null : name)
  return namesBy({ lines: root, meta, space, root: null, encode: (name) => name, decode: own })
}

/** The keys of one line. */
interface LineNames {
  readonly start: string
  readonly end: string
  readonly claims: string
  readonly jump: string
  readonly pin: string
}

/** The names of so many lines are kept, as most locks are taken again and again. */
const MOST_KEPT = 1000

function namesBy({ lines, meta, space, root, encode: toName, decode: toResource }: NameRules): EtcdNames {
  const kept = new Map<string, LineNames>()
  const make = (resource: string): LineNames => {
    const line = `${lines}${toName(resource)}`
    const [start, end, claims] = [`${line}${ABOUT}`, `${line}${AFTER_SLASH}`, `${line}/`]
    const names = { start, end, claims, jump: `${start}jump`, pin: `${start}pin` }
    if (kept.size === MOST_KEPT) kept.clear()
    kept.set(resource, names)
    return names
  }
  const line = (resource: string): LineNames => kept.get(resource) ?? make(resource)
  return {
    lines,
    space,
    root,
    states: `${meta}states/`,
    lineStart: (resource) => line(resource).start,
    lineEnd: (resource) => line(resource).end,
    claims: (resource) => line(resource).claims,
    jump: (resource) => line(resource).jump,
    pin: (resource) => line(resource).pin,
    client: (lease) => `${meta}clients/${lease}`,
    resourceOf(key) {
      const slash = key.lastIndexOf('/')
      const isClaim = slash >= lines.length && CLAIM.test(key.slice(slash + 1))
      if (isClaim) return toResource(key.slice(lines.length, slash))
      const [, name] = /^(.*)\.(?:jump|pin)$/s.exec(key.slice(lines.length)) ?? []
      return name === undefined ? null : toResource(name)
    },
  }
}
