import { connect, type Socket } from 'node:net'

/** As large as the reads of Node's own streams. */
const READ_BYTES = 64 * 1024

/**
 * A TCP connection that reads everything into one buffer: a stream would allocate one of that size
 * for each answer. So the bytes of `onData` are overwritten by those that arrive next.
 */
export function plainSocket(
  { host, port }: { readonly host: string; readonly port: number },
  onData: (chunk: Buffer) => void,
): Socket {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const callback = (size: number): boolean => {
    onData(buffer.subarray(0, size))
    return true
  }
  return connect({ host, port, onread: { buffer, callback } })
}
