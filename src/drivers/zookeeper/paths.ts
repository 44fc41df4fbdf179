import { invalid } from '../../base/errors.js'

// Parts that are empty, `.` or `..`, and the characters that the server refuses (PathUtils):
// control characters, surrogates, private use, and the specials at the end of the plane.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const INVALID = /\/\.{0,2}(?:\/|$)|[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/
/**
 * The same before the number that the server adds: the last part may be empty, `.` or `..` without
 * it.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const INVALID_PREFIX = /\/\.{0,2}\/|[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/

/** The path, if a server would accept it. */
export function checkPath(path: string, isSequential = false): string {
  const invalidPart = isSequential ? INVALID_PREFIX : INVALID
  if (path === '/' || (path.startsWith('/') && !invalidPart.test(path))) return path
  throw invalid(
    `'${path}' is not a ZooKeeper path: it must begin with a slash, must not end with one, and must have no empty, '.' or '..' part and no control characters`,
  )
}

/** The path below which a client works. Its callers do not see it. */
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
