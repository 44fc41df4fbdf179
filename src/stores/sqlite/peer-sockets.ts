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
/** The longest socket path that every system accepts. */
const LONGEST_SOCKET_PATH = 100

/**
 * Sockets between the processes that use one file. Each store value listens on a socket of its own
 * beside the file; a process that promotes or revokes one of its claims tells it there. Only an
 * accelerator, so nothing here throws or rejects: without a socket, the engine asks a little later.
 */
export class PeerSockets {
  /**
   * The name of our socket. Never used twice, so any process may remove the socket of a dead one.
   */
  readonly name: string
  readonly #path: string
  readonly #receive: (message: Message) => void
  /** Our connections to other sockets, by name, and the connections of others to ours. */
  readonly #outgoing = new Map<string, Socket>()
  readonly #incoming = new Set<Socket>()
  /** The sockets that we have written to since idle ones were closed. */
  readonly #used = new Set<string>()
  #server: Server | undefined
  #hasFailed = false
  #foundFolder: string | undefined

  constructor(path: string, name: string, receive: (message: Message) => void) {
    this.name = name
    this.#path = path
    this.#receive = receive
  }

  /**
   * Starts to listen, synchronously: no claim may be in the file before its client can be reached.
   */
  listen(): void {
    if (this.#server) return
    // Outside the async context of the first caller.
    detached(() => quietly(() => this.#listen()))
  }

  /** Listens again if our socket was removed. */
  check(): void {
    if (!this.#server || process.platform === 'win32' || existsSync(this.#address(this.name))) return
    this.#server.close()
    this.#server = undefined
    this.listen()
  }

  /** Whether other processes can connect to our socket. */
  get isListening(): boolean {
    return this.#server !== undefined && !this.#hasFailed
  }

  /** How many connections there are, in either direction. */
  get size(): number {
    return this.#outgoing.size + this.#incoming.size
  }

  /** Resolves when the system has the messages: the process may exit after that. */
  send(to: string, messages: readonly Message[]): Promise<void> {
    const text = messages.map((message) => `${JSON.stringify(message)}\n`).join('')
    const socket = this.#outgoing.get(to) ?? this.#connect(to)
    this.#used.add(to)
    // A stopped process does not read. It asks when it continues.
    if (socket.writableLength > MOST_UNREAD_BYTES) socket.destroy()
    // Once connected, a write hands the text to the system at once.
    if (!socket.connecting) {
      socket.write(text)
      return DONE
    }
    return new Promise((resolve) => {
      socket.once('error', () => resolve())
      socket.write(text, () => resolve())
    })
  }

  /** Closes the connections that were not used since the last time: many processes may have met. */
  closeIdle(): void {
    for (const [name, socket] of this.#outgoing) if (!this.#used.has(name)) socket.destroy()
    this.#used.clear()
  }

  close(): void {
    for (const socket of this.#outgoing.values()) socket.destroy()
    this.#outgoing.clear()
    for (const socket of this.#incoming) socket.destroy()
    if (!this.#server) return
    // Also removes the socket.
    this.#server.close()
    this.#server = undefined
    // Succeeds for the last process only.
    quietly(() => rmdirSync(this.#folder))
  }

  /** Removes the sockets of killed processes. */
  async sweep(most: number): Promise<void> {
    if (process.platform === 'win32') return
    const names = await readdir(this.#folder).catch(() => [])
    // A refused connection removes the socket.
    for (const name of names.slice(0, most))
      if (name !== this.name && !this.#outgoing.has(name)) await this.#probe(name)
  }

  #listen(): void {
    if (process.platform !== 'win32') makeFolder(this.#folder)
    const server = createServer((socket) => this.#accept(socket))
    // Without a socket we get no pushes, and ask instead.
    server.on('error', () => {
      this.#hasFailed = true
    })
    this.#hasFailed = false
    server.listen({ path: this.#address(this.name), exclusive: true })
    server.unref()
    this.#server = server
    // A user that may write the file may also connect here.
    if (process.platform !== 'win32')
      quietly(() => chmodSync(this.#address(this.name), statSync(this.#path).mode & 0o666))
  }

  #accept(socket: Socket): void {
    let rest = ''
    this.#incoming.add(socket)
    socket.on('close', () => this.#incoming.delete(socket))
    socket.setEncoding('utf8')
    socket.unref()
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: string) => {
      const texts = (rest + chunk).split('\n')
      rest = texts.pop() ?? ''
      for (const text of texts) quietly(() => this.#receive(JSON.parse(text)))
    })
  }

  #connect(to: string): Socket {
    const socket = this.#open(to)
    this.#outgoing.set(to, socket)
    socket.once('connect', () => socket.unref())
    socket.on('close', () => {
      if (this.#outgoing.get(to) === socket) this.#outgoing.delete(to)
    })
    return socket
  }

  /** Uses a connection of its own: one with messages must not be closed. */
  #probe(to: string): Promise<void> {
    const socket = this.#open(to)
    return new Promise((resolve) => {
      socket.once('close', () => resolve())
      socket.once('connect', () => socket.destroy())
    })
  }

  #open(to: string): Socket {
    const socket = detached(() => connect(this.#address(to)))
    // Each batch that is sent before it is connected listens for its failure.
    socket.setMaxListeners(0)
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') quietly(() => rmSync(this.#address(to), { force: true }))
    })
    return socket
  }

  #address(name: string): string {
    return join(this.#folder, name)
  }

  /** Resolved at first use: by then the folder of the file exists, or never will. */
  get #folder(): string {
    this.#foundFolder ??= folderFor(realPath(this.#path), this.name)
    return this.#foundFolder
  }
}

/** Processes that reach the file through different links must use one folder. */
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

/** Not its parents: a missing folder of the file is an error to report, not to repair. */
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
    // A lost message costs a tenth of a second.
  }
}
