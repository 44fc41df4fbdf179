/**
 * How keys, channels and ids are written. The resource is the hash tag, so that a Cluster keeps everything of one resource in one slot;
 * for that, braces (and the percent sign that stands for them) are escaped. Nothing else is: people read keys.
 */
export class Names {
  readonly #prefix: string
  readonly #lines: string

  constructor(prefix: string, space: string) {
    this.#prefix = prefix
    this.#lines = `${prefix}:${toKey(space)}:{`
  }

  line(resource: string): string {
    return `${this.#lines}${toKey(resource)}}`
  }

  /** The resource of a line's key; null if it is none of this space. The user's client may have put a prefix of its own before it. */
  resourceOf(key: string): string | null {
    const start = key.lastIndexOf('{')
    const isOurs = key.endsWith('}') && key.slice(0, start + 1).endsWith(this.#lines)
    return isOurs ? fromKey(key.slice(start + 1, -1)) : null
  }

  /** What matches the keys of all lines whose resources begin so. */
  linePattern(prefix: string): string {
    return `${glob(this.#lines + toKey(prefix))}*}`
  }

  /** What matches the keys of the lines of every space. */
  get everyLinePattern(): string {
    return `${glob(this.#prefix)}:*:{*}`
  }

  /** The space of a line's key; null if it is none of ours. */
  spaceOf(key: string): string | null {
    const start = `${this.#prefix}:`
    const at = key.indexOf(start)
    const end = key.lastIndexOf(':{')
    const isOurs = at >= 0 && key.endsWith('}') && end >= at + start.length
    return isOurs ? fromKey(key.slice(at + start.length, end)) : null
  }

  state(key: string): string {
    return `${this.#lines}${toKey(key)}}:state`
  }

  /** Told when the state changes. */
  stateChannel(key: string): string {
    return this.state(key)
  }

  /** Where one client is told what became of its claims. */
  clientChannel(client: string): string {
    return `${this.#prefix}:client:${token(client)}`
  }
}

/** An id as it is written inside a line: no white space, and never `-` or `#`, which mean something there. */
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

/** What matches exactly this text, for SCAN. */
export function glob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&')
}
