import { createServer } from 'node:net'

const LOWEST = 12_000
const HIGHEST = 32_000

/**
 * A port on which nobody listens, below those that the system gives to outgoing connections: a server that was killed finds it free
 * when it comes back, and a client that keeps knocking cannot be connected to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
