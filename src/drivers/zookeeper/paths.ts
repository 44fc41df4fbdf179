import { invalid } from '../../base/errors.js'

// As the server has it (PathUtils): control characters, surrogates, private use, and the specials at the end of the plane.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/
/** An empty part, or `.`, or `..`. */
const NO_NAME = /\/\.{0,2}(?:\/|$)/

/** The path, if a server would accept it. A sequential node's may end with a slash, as a number follows. */
export function checkPath(path: string, isSequential = false): string {
  const full = isSequential ? `${path}0` : path
  const isFine = full === '/' || (full.startsWith('/') && !NO_NAME.test(full) && !FORBIDDEN.test(full))
  if (isFine) return path
  throw invalid(
    `'${path}' is no ZooKeeper path: it must begin with a slash, must not end with one, and must have no empty, '.' or '..' part and no control characters`,
  )
}

/** Everything of a client happens below this path, which its users do not see. */
export class Chroot {
  readonly #root: string

  constructor(root: string) {
    this.#root = root === '/' ? '' : root
  }

  toServer(path: string): string {
    if (this.#root === '') return path
    return path === '/' ? this.#root : this.#root + path
  }

  toClient(path: string): string {
    if (this.#root === '') return path
    return path === this.#root ? '/' : path.slice(this.#root.length)
  }
}
