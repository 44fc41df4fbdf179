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
    const rest = this.#buffer.subarray(this.#at)
    this.#buffer = rest.length === 0 ? NOTHING : Buffer.from(rest)
    this.#at = 0
  }

  /** The next complete reply; null: more has to come. */
  next(kind: ReplyKind): Reply | null {
    return kind === 'meta' ? this.#nextMeta() : this.#nextList()
  }

  #nextMeta(): Reply | null {
    const start = this.#at
    const line = this.#nextLine()
    if (line === null) return null
    const word = line.indexOf(' ')
    const status = word < 0 ? line : line.slice(0, word)
    if (status !== 'VA') {
      return isFailure(status) ? { failure: line } : { status, cas: casOf(line), value: '' }
    }
    const end = this.#at + Number.parseInt(line.slice(3), 10)
    if (end + CRLF_BYTES > this.#buffer.length) {
      this.#at = start
      return null
    }
    const value = this.#buffer.toString('utf8', this.#at, end)
    this.#at = end + CRLF_BYTES
    return { status, cas: casOf(line), value }
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
    const end = this.#buffer.indexOf(NEWLINE, this.#at)
    if (end < 0) return null
    const line = this.#buffer.toString('latin1', this.#at, end - 1)
    this.#at = end + 1
    return line
  }
}

/** Almost every status has two letters. */
function isFailure(status: string): boolean {
  return status.length > 2 && FAILURE.test(status)
}

/** The flag `c` of a reply. */
function casOf(line: string): number {
  const at = line.indexOf(' c')
  return at < 0 ? 0 : Number.parseInt(line.slice(at + 2), 10)
}
