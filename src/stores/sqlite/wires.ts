import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, realpathSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { detached } from '../../base/env.js'
import type { Message } from './outbox.js'

const MOST_UNREAD_BYTES = 65_536
const DONE = Promise.resolve()
/** The longest path that every system takes for a socket. */
const LONGEST_SOCKET_PATH = 100

/**
 * The wires between the processes that use one file: each store value listens on a socket of its own beside the file, and whoever
 * promotes or robs one of its claims says so there. Only an accelerator, so nothing here throws or rejects: where a wire cannot be
 * laid, the engine asks a little later.
 */
export class Wires {
  /** This end. Never used again by anybody, so that a dead end can be removed by whoever finds it. */
  readonly name: string
  readonly #path: string
  readonly #receive: (message: Message) => void
  /** The lines that we have laid, by their other end, and those that others have laid to us. */
  readonly #lines = new Map<string, Socket>()
  readonly #accepted = new Set<Socket>()
  #server: Server | undefined
  #hasFailed = false
  #foundFolder: string | undefined

  constructor(path: string, name: string, receive: (message: Message) => void) {
    this.name = name
    this.#path = path
    this.#receive = receive
  }

  /** Listens from now on; at once, so that no claim is in the file before its client can be reached. */
  listen(): void {
    if (this.#server) return
    // Outside the flow of the caller who happened to claim first.
    detached(() => quietly(() => this.#listen()))
  }

  /** Listens again if somebody has removed our end. */
  check(): void {
    if (!this.#server || process.platform === 'win32' || existsSync(this.#address(this.name))) return
    this.#server.close()
    this.#server = undefined
    this.listen()
  }

  /** Whether others can lay a line to this end. */
  get isListening(): boolean {
    return this.#server !== undefined && !this.#hasFailed
  }

  /** How many lines are laid, in either direction. */
  get size(): number {
    return this.#lines.size + this.#accepted.size
  }

  /** Resolves when the messages are out of our hands: the process may end after that. */
  send(to: string, messages: readonly Message[]): Promise<void> {
    const text = messages.map((message) => `${JSON.stringify(message)}\n`).join('')
    const line = this.#lines.get(to) ?? this.#connect(to)
    // Nobody has read for long: a stopped process, which asks when it goes on.
    if (line.writableLength > MOST_UNREAD_BYTES) line.destroy()
    // Once it is laid, writing hands the text to the system at once.
    if (!line.connecting) {
      line.write(text)
      return DONE
    }
    return new Promise((resolve) => {
      line.once('error', () => resolve())
      line.write(text, () => resolve())
    })
  }

  close(): void {
    for (const line of this.#lines.values()) line.destroy()
    this.#lines.clear()
    for (const line of this.#accepted) line.destroy()
    if (!this.#server) return
    // Removes the socket, too.
    this.#server.close()
    this.#server = undefined
    // Succeeds for the last one only.
    quietly(() => rmdirSync(this.#folder))
  }

  /** Removes the ends of processes that were killed. */
  async sweep(most: number): Promise<void> {
    if (process.platform === 'win32') return
    const names = await readdir(this.#folder).catch(() => [])
    // An attempt to reach a dead end removes it.
    for (const name of names.slice(0, most))
      if (name !== this.name && !this.#lines.has(name)) await this.#probe(name)
  }

  #listen(): void {
    if (process.platform !== 'win32') makeFolder(this.#folder)
    const server = createServer((line) => this.#onLine(line))
    // Without an end of our own we are not told, and ask.
    server.on('error', () => {
      this.#hasFailed = true
    })
    this.#hasFailed = false
    server.listen({ path: this.#address(this.name), exclusive: true })
    server.unref()
    this.#server = server
    // Whoever may write to the file may ring here.
    if (process.platform !== 'win32')
      quietly(() => chmodSync(this.#address(this.name), statSync(this.#path).mode & 0o666))
  }

  #onLine(line: Socket): void {
    let rest = ''
    this.#accepted.add(line)
    line.on('close', () => this.#accepted.delete(line))
    line.setEncoding('utf8')
    line.unref()
    line.on('error', () => line.destroy())
    line.on('data', (chunk: string) => {
      const texts = (rest + chunk).split('\n')
      rest = texts.pop() ?? ''
      for (const text of texts) quietly(() => this.#receive(JSON.parse(text)))
    })
  }

  #connect(to: string): Socket {
    const line = this.#open(to)
    this.#lines.set(to, line)
    line.once('connect', () => line.unref())
    line.on('close', () => {
      if (this.#lines.get(to) === line) this.#lines.delete(to)
    })
    return line
  }

  /** A line of its own: one that others write to must not be closed under them. */
  #probe(to: string): Promise<void> {
    const line = this.#open(to)
    return new Promise((resolve) => {
      line.once('close', () => resolve())
      line.once('connect', () => line.destroy())
    })
  }

  #open(to: string): Socket {
    const line = detached(() => connect(this.#address(to)))
    line.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') quietly(() => rmSync(this.#address(to), { force: true }))
    })
    return line
  }

  #address(name: string): string {
    return join(this.#folder, name)
  }

  /** Found at first use: by then the folder of the file is there, if it ever will be. */
  get #folder(): string {
    this.#foundFolder ??= folderFor(realPath(this.#path), this.name)
    return this.#foundFolder
  }
}

/** Processes that reach the file by different links have to meet in one place. */
function realPath(path: string): string {
  for (const find of [() => realpathSync(path), () => join(realpathSync(dirname(path)), basename(path))]) {
    try {
      return find()
    } catch {
      // Not there yet.
    }
  }
  return path
}

function folderFor(path: string, name: string): string {
  const key = createHash('sha256').update(path).digest('hex').slice(0, 16)
  if (process.platform === 'win32') return `\\\\.\\pipe\\holdfast-${key}`
  const beside = `${path}-wires`
  return Buffer.byteLength(join(beside, name)) <= LONGEST_SOCKET_PATH
    ? beside
    : join(tmpdir(), `holdfast-${key}`)
}

/** Only the folder itself: where the file's own folder is missing, that has to be said, not mended. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function quietly(work: () => void): void {
  try {
    work()
  } catch {
    // See above: a message that is not heard costs a tenth of a second.
  }
}
