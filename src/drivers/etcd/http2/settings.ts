import { Code, Http2Error } from './errors.js'
import { Flag, FrameType, frame, type Http2Frame, LARGEST_UINT31, LEAST_MAX_FRAME } from './frames.js'

const Setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
} as const
const SETTING_BYTES = 6
const LARGEST_MAX_FRAME = 2 ** 24 - 1

/** What both sides may send on a stream, or on the connection, before anything else is said. */
export const FIRST_WINDOW = 65_535
export const SETTINGS_ACK = frame(FrameType.settings, Flag.ack, 0, Buffer.alloc(0))

/** Our own: no dynamic table for headers, no pushes, and that window for each stream. */
export function clientSettings(windowBytes: number): Buffer {
  const settings = [
    [Setting.headerTableSize, 0],
    [Setting.enablePush, 0],
    [Setting.initialWindowSize, windowBytes],
  ] as const
  const payload = Buffer.alloc(settings.length * SETTING_BYTES)
  settings.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, index * SETTING_BYTES)
    payload.writeUInt32BE(value, index * SETTING_BYTES + 2)
  })
  return frame(FrameType.settings, 0, 0, payload)
}

/** What the server has set. */
export class ServerSettings {
  maxConcurrentStreams = Infinity
  initialWindow = FIRST_WINDOW
  maxFrame = LEAST_MAX_FRAME

  apply({ payload, streamId }: Http2Frame): void {
    if (streamId !== 0) throw new Http2Error(Code.protocolError, 'Settings belong to no stream')
    if (payload.length % SETTING_BYTES !== 0)
      throw new Http2Error(Code.frameSizeError, 'Settings are cut off')
    for (let at = 0; at < payload.length; at += SETTING_BYTES)
      this.#set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2))
  }

  #set(id: number, value: number): void {
    if (id === Setting.maxConcurrentStreams) this.maxConcurrentStreams = value
    if (id === Setting.initialWindowSize) {
      if (value > LARGEST_UINT31) throw new Http2Error(Code.flowControlError, `A window of ${value} bytes`)
      this.initialWindow = value
    }
    if (id === Setting.maxFrameSize) {
      if (value < LEAST_MAX_FRAME || value > LARGEST_MAX_FRAME)
        throw new Http2Error(Code.protocolError, `Frames of ${value} bytes are not allowed`)
      this.maxFrame = value
    }
  }
}
