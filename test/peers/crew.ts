import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { type PeerName, PeerProcess, peerObstacle, SharedCount } from './peer.js'

/** A Redis and the programs that share it, for the tests of one file. */
export class Crew {
  server!: RedisServer
  readonly #shared = new Map<PeerName, Promise<PeerProcess>>()
  readonly #own: PeerProcess[] = []
  readonly #counts: SharedCount[] = []

  /** A program that all tests of the file use. */
  peer(name: PeerName): Promise<PeerProcess> {
    const known = this.#shared.get(name) ?? PeerProcess.start(name, this.server.port)
    this.#shared.set(name, known)
    return known
  }

  /** A program of one test, which may be killed. */
  async ownPeer(name: PeerName): Promise<PeerProcess> {
    const peer = await PeerProcess.start(name, this.server.port)
    this.#own.push(peer)
    return peer
  }

  newCount(): SharedCount {
    const count = new SharedCount()
    this.#counts.push(count)
    return count
  }

  endTest(): void {
    for (const peer of this.#own.splice(0)) peer.kill()
    for (const count of this.#counts.splice(0)) count.remove()
  }

  async end(): Promise<void> {
    for (const peer of this.#shared.values()) (await peer).kill()
    await this.server.stop()
  }
}

/** Tests with a peer on one Redis; skipped, with the reason in the title, where it is missing. */
export function describeWithPeer(name: PeerName, title: string, body: (crew: Crew) => void): void {
  const reason = peerObstacle(name)
  const full = reason === null ? title : `${title} (skipped: ${reason})`
  describe.skipIf(reason !== null)(full, () => {
    describeOn('redis', 'on one server', () => {
      const crew = new Crew()
      beforeAll(async () => {
        crew.server = await startRedis()
      })
      afterEach(() => crew.endTest())
      afterAll(() => crew.end())
      body(crew)
    })
  })
}
