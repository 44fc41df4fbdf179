import { Code, Http2Error } from './errors.js'
import { Flag, FrameType, frame, LARGEST_UINT31 } from './frames.js'
import { FIRST_WINDOW, type ServerSettings } from './settings.js'
import type { Http2Stream } from './stream.js'

/** Sends what streams have to send, as far as the windows of the server have room. */
export class SendWindows {
  readonly #settings: ServerSettings
  readonly #write: (bytes: Buffer) => void
  /** How many bytes the server takes on all streams together. */
  #window = FIRST_WINDOW
  readonly #blocked = new Set<Http2Stream>()

  constructor(settings: ServerSettings, write: (bytes: Buffer) => void) {
    this.#settings = settings
    this.#write = write
  }

  /** Whether all of a stream's bytes have room in one frame, which is taken then. */
  take(stream: Http2Stream, bytes: number): boolean {
    if (bytes > Math.min(this.#window, stream.window, this.#settings.maxFrame)) return false
    this.#window -= bytes
    stream.window -= bytes
    return true
  }

  send(stream: Http2Stream): void {
    for (let next = stream.unsent[0]; next; next = stream.unsent[0]) {
      const room = Math.min(this.#window, stream.window, this.#settings.maxFrame)
      if (room <= 0) {
        this.#blocked.add(stream)
        return
      }
      const part = next.bytes.length <= room ? next.bytes : next.bytes.subarray(0, room)
      const isWhole = part === next.bytes
      if (isWhole) stream.unsent.shift()
      else next.bytes = next.bytes.subarray(room)
      this.take(stream, part.length)
      this.#write(frame(FrameType.data, isWhole && next.isLast ? Flag.endStream : 0, stream.id, part))
    }
    this.forget(stream)
  }

  /** The server takes so many more bytes; on all streams together, or on one. */
  widen(stream: Http2Stream | null, bytes: number): void {
    if (bytes === 0) throw new Http2Error(Code.protocolError, 'A window grew by nothing')
    if (stream) stream.window = checked(stream.window + bytes)
    else this.#window = checked(this.#window + bytes)
    this.#resume()
  }

  /** The server has changed the window that its streams begin with, and with it all of them. */
  shift(streams: Iterable<Http2Stream>, bytes: number): void {
    for (const stream of streams) stream.window = checked(stream.window + bytes)
    this.#resume()
  }

  forget(stream: Http2Stream): void {
    if (this.#blocked.size > 0) this.#blocked.delete(stream)
  }

  #resume(): void {
    for (const stream of [...this.#blocked]) this.send(stream)
  }
}

function checked(window: number): number {
  if (window <= LARGEST_UINT31) return window
  throw new Http2Error(Code.flowControlError, `A window of ${window} bytes`)
}
