/** How a reply is read: one line with its data, or lines up to END. */
export type ReplyKind = 'meta' | 'list'

/** The reply to a meta command: `HD c12`, `VA 3 c12` with its data, `EN`, `EX`. */
export interface MetaReply {
  /** `HD`, `VA`, `EN`, `EX`, `NF`, `NS`, `MN`; of the text protocol also `STORED`. */
  readonly status: string
  /** The CAS number; 0: not told. */
  readonly cas: number
  /** With `VA`. */
  readonly value: string
}

/** A complete reply. `failure`: the server's words, where it answered with an error. */
export type Reply = { readonly failure: string } | MetaReply | readonly string[]

const NOTHING = Buffer.alloc(0)
const NEWLINE = 10
const SPACE = 32
const [ZERO, NINE] = [48, 57]
const [C, D, H] = [99, 68, 72]
const CRLF_BYTES = 2
const FAILURE = /^(?:ERROR|CLIENT_ERROR|SERVER_ERROR|BUSY)\b/

/** Cuts what the server sends into replies. */
export class ReplyReader {
  #buffer: Buffer = NOTHING
  #at = 0
  #lines: string[] = []

  /** The chunk must stay as it is until `keepRest`. */
  add(chunk: Buffer): void {
    const rest = this.#buffer.length - this.#at
    this.#buffer = rest === 0 ? chunk : Buffer.concat([this.#buffer.subarray(this.#at), chunk])
    this.#at = 0
  }

  /** Copies what is not read yet. */
  keepRest(): void {
    const isRead = this.#at === this.#buffer.length
    this.#buffer = isRead ? NOTHING : Buffer.from(this.#buffer.subarray(this.#at))
    this.#at = 0
  }

  /** The next complete reply; null: more has to come. */
  next(kind: ReplyKind): Reply | null {
    return kind === 'meta' ? this.#nextMeta() : this.#nextList()
  }

  #nextMeta(): Reply | null {
    const start = this.#at
    const newline = this.#newline()
    if (newline < 0) return null
    const cas = casIn(this.#buffer, start, newline)
    // The answer to every write that succeeds: no text is made of it.
    if (this.#buffer[start] === H && this.#buffer[start + 1] === D) {
      this.#at = newline + 1
      return { status: 'HD', cas, value: '' }
    }
    const line = this.#textUpTo(newline)
    const word = line.indexOf(' ')
    const status = word < 0 ? line : line.slice(0, word)
    if (status !== 'VA') return isFailure(status) ? { failure: line } : { status, cas, value: '' }
    const bytes = Number.parseInt(line.slice(3), 10)
    // What follows cannot be told apart: the connection ends.
    if (!(bytes >= 0)) return { failure: line }
    const end = this.#at + bytes
    if (end + CRLF_BYTES > this.#buffer.length) {
      this.#at = start
      return null
    }
    const value = this.#buffer.toString('utf8', this.#at, end)
    this.#at = end + CRLF_BYTES
    return { status, cas, value }
  }

  #nextList(): Reply | null {
    for (let line = this.#nextLine(); line !== null; line = this.#nextLine()) {
      if (FAILURE.test(line)) return { failure: line }
      if (line === 'END') {
        const lines = this.#lines
        this.#lines = []
        return lines
      }
      this.#lines.push(line)
    }
    return null
  }

  #nextLine(): string | null {
    const newline = this.#newline()
    return newline < 0 ? null : this.#textUpTo(newline)
  }

  /** Where the present line ends. Lines are short: a loop is faster than `indexOf`. */
  #newline(): number {
    const { length } = this.#buffer
    for (let at = this.#at; at < length; at++) if (this.#buffer[at] === NEWLINE) return at
    return -1
  }

  #textUpTo(newline: number): string {
    const line = this.#buffer.toString('latin1', this.#at, newline - 1)
    this.#at = newline + 1
    return line
  }
}

/** Almost every status has two letters. */
function isFailure(status: string): boolean {
  return status.length > 2 && FAILURE.test(status)
}

/** The number of the flag `c` in a line. */
function casIn(line: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && !(line[at] === SPACE && line[at + 1] === C)) at++
  let cas = 0
  for (at += 2; at < end; at++) {
    const digit = line[at] as number
    if (digit < ZERO || digit > NINE) break
    cas = cas * 10 + digit - ZERO
  }
  return cas
}
