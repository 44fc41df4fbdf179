/** The error codes of RFC 9113 that this client sends, or has to understand. */
export const Code = {
  noError: 0,
  protocolError: 1,
  flowControlError: 3,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const

const NAMES = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

export function nameOfCode(code: number): string {
  return NAMES[code] ?? `error ${code}`
}

/** The server broke the protocol. The connection cannot be used any more. */
export class Http2Error extends Error {
  /** What the server is told. */
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Http2Error'
    this.code = code
  }
}
