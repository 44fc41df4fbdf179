import { createHash } from 'node:crypto'

/** Enough that two names never meet; a key may have 250 bytes. */
const NAME_CHARS = 40
const SPACE_CHARS = 16

export type ItemKind = 'l' | 's'

/** The keys of one prefix. Names are hashed: a key has no spaces, and at most 250 bytes. */
export class ItemKeys {
  readonly #prefix: string
  readonly #spaces = new Map<string, string>()

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** The key of a line (`l`) or a state (`s`). */
  of(kind: ItemKind, space: string, name: string): string {
    return `${this.start(kind, space)}${hash(name, NAME_CHARS)}`
  }

  /** How the keys of a space begin. */
  start(kind: ItemKind, space: string): string {
    const known = this.#spaces.get(space) ?? hash(space, SPACE_CHARS)
    this.#spaces.set(space, known)
    return `${this.startOfAll(kind)}${known}:`
  }

  startOfAll(kind: ItemKind): string {
    return `${this.#prefix}:${kind}:`
  }
}

function hash(name: string, chars: number): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, chars)
}
