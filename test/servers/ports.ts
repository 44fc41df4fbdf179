import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const LOWEST = 12_000
const HIGHEST = 32_000
/** Longer than any run of the tests. */
const RESERVED_FOR_MS = 3_600_000

/**
 * A port that nobody listens on, and that no other test of this machine gets: a server takes a
 * while until it listens, and another one after each kill. It is below those that the system gives
 * to outgoing connections: a server that was killed finds it free when it comes back, and a client
 * that keeps knocking cannot be connected to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    // In this order: trying a port out takes it for a moment, which could be the one in which its
    // owner wants it.
    if (reserve(port) && (await isFree(port))) return port
  }
}

/** By a file for each port, which all test processes see. */
function reserve(port: number): boolean {
  const folder = join(tmpdir(), 'holdfast-ports')
  const file = join(folder, String(port))
  mkdirSync(folder, { recursive: true })
  try {
    closeSync(openSync(file, 'wx'))
    return true
  } catch {
    const reservedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - reservedAt > RESERVED_FOR_MS) rmSync(file, { force: true })
    return false
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
