const STATE = ':state'

/**
 * How keys, channels and ids are written. The resource is the hash tag, so that a Cluster keeps
 * everything of one resource in one slot. Only braces and the percent sign are escaped, since
 * people read keys.
 */
export class RedisNames {
  readonly #prefix: string
  readonly #lines: string

  constructor(prefix: string, space: string) {
    this.#prefix = prefix
    this.#lines = `${prefix}:${toKey(space)}:{`
  }

  line(resource: string): string {
    return `${this.#lines}${toKey(resource)}}`
  }

  /**
   * The resource of a line's key; null: it is not of this space. The user's client may have put its
   * own prefix before the key.
   */
  resourceOf(key: string): string | null {
    const start = key.lastIndexOf('{')
    const isOurs = key.endsWith('}') && key.slice(0, start + 1).endsWith(this.#lines)
    return isOurs ? fromKey(key.slice(start + 1, -1)) : null
  }

  /** Matches the keys of all lines whose resources begin with a prefix. */
  linePattern(prefix: string): string {
    return `${glob(this.#lines + toKey(prefix))}*}`
  }

  /** Matches the keys of the lines of every space. */
  get everyLinePattern(): string {
    return `${glob(this.#prefix)}:*:{*}`
  }

  /** The space of a line's key; null: it is not ours. */
  spaceOf(key: string): string | null {
    const start = `${this.#prefix}:`
    const at = key.indexOf(start)
    const end = key.lastIndexOf(':{')
    const isOurs = at >= 0 && key.endsWith('}') && end >= at + start.length
    return isOurs ? fromKey(key.slice(at + start.length, end)) : null
  }

  state(key: string): string {
    return `${this.#lines}${toKey(key)}}${STATE}`
  }

  /** The name of a state by its key; null: it is not of this space. */
  stateOf(key: string): string | null {
    return key.endsWith(STATE) ? this.resourceOf(key.slice(0, -STATE.length)) : null
  }

  /** Matches the keys of all states whose names begin with a prefix. */
  statePattern(prefix: string): string {
    return `${this.linePattern(prefix)}${STATE}`
  }

  /** Where changes of a state are published. */
  stateChannel(key: string): string {
    return this.state(key)
  }

  /** Where one client is told about its claims. */
  clientChannel(client: string): string {
    return `${this.#prefix}:client:${token(client)}`
  }
}

/**
 * An id as it is written inside a line: without white space, and never `-` or `#`, which have a
 * meaning there.
 */
export function token(id: string): string {
  return /^[\w:.-]{2,}$/.test(id) ? id : encodeURIComponent(id).replaceAll('-', '%2D')
}

export function fromToken(text: string): string {
  return text.includes('%') ? decodeURIComponent(text) : text
}

function toKey(name: string): string {
  return /[%{}]/.test(name) ? name.replace(/[%{}]/g, encodeURIComponent) : name
}

function fromKey(text: string): string {
  return text.includes('%') ? text.replace(/%(25|7B|7D)/g, decodeURIComponent) : text
}

/** A pattern for SCAN that matches exactly this text. */
export function glob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&')
}
