import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { missingPeer } from '../../scripts/peers.mjs'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { WallClock } from '../servers/wall-clock.js'
import { EtcdPeer, KINDS } from './etcd/peers.js'

const TURNS = 20
/** The shortest lease that a server with patient times allows. */
const TTL_S = 2

const noGo = missingPeer('etcd')
type Kind = keyof typeof KINDS
const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => kind !== 'go' || noGo === null)
const title =
  noGo === null ? 'etcdctl, Go and we in one line' : `etcdctl and we in one line (without Go: ${noGo})`

describeOn('etcd', title, () => {
  let server: EtcdServer
  let folder: string
  const peers: EtcdPeer[] = []
  const start = (command: readonly string[]): EtcdPeer => {
    const peer = new EtcdPeer(command)
    peers.push(peer)
    return peer
  }
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-etcd-peers-'))
    server = await startEtcd()
  })
  afterAll(async () => {
    for (const peer of peers) peer.signal('SIGKILL')
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('lose nothing of an unprotected counter', { timeout: 120_000 }, async () => {
    const file = join(folder, 'count')
    writeFileSync(file, '0')
    const crew = [...kinds, ...kinds]
    const counters = crew.map((kind) =>
      start(KINDS[kind].count(server.address, 'count', file, String(TURNS))),
    )
    const outcomes = await Promise.all(counters.map((peer) => peer.ended))
    expect(outcomes).toEqual(crew.map(() => ({ code: 0, complaint: '' })))
    expect(readFileSync(file, 'utf8')).toBe(String(crew.length * TURNS))
  })

  const others = (kind: Kind): Kind[] => kinds.filter((other) => other !== kind)
  const pairs = kinds.flatMap((kind) => others(kind).map((other) => [kind, other] as const))

  describe.concurrent('a hold', () => {
    it.each(pairs)('of %s that is killed goes to %s after its lease', async (kind, other) => {
      const name = `killed/${kind}/${other}/lock`
      const holder = start(KINDS[kind].hold(server.address, name, String(TTL_S)))
      await holder.holds()
      const next = start(KINDS[other].hold(server.address, name, String(TTL_S)))
      await inLine(name, 2)
      holder.signal('SIGKILL')
      await next.holds()
      next.release()
      await next.ended
      expect(await claims(name)).toHaveLength(0)
    })

    it.each(pairs)(
      'of %s that stands still goes to %s, and is not there any more afterwards',
      async (kind, other) => {
        const name = `stopped/${kind}/${other}/lock`
        const holder = start(KINDS[kind].hold(server.address, name, String(TTL_S)))
        await holder.holds()
        const next = start(KINDS[other].hold(server.address, name, '20'))
        await inLine(name, 2)
        holder.signal('SIGSTOP')
        await next.holds()
        holder.signal('SIGCONT')
        holder.release()
        // Only ours tells. Nobody disturbs the next one.
        if (kind === 'ours') await holder.says('lost')
        await holder.ended
        expect(await claims(name)).toHaveLength(1)
        next.release()
        await next.ended
        expect(await claims(name)).toHaveLength(0)
      },
    )
  })

  it('a hold of a client whose wall clock jumps lasts, and so does a place', async ({ skip }) => {
    const clock = new WallClock()
    onTestFinished(() => clock.dispose())
    if (clock.obstacle !== null) skip(clock.obstacle)
    const name = 'clock/lock'
    const command = KINDS.ours.hold(server.address, name, String(TTL_S))
    const env = Object.entries(clock.env).map(([key, value]) => `${key}=${value}`)
    const holder = start(['env', ...env, ...command])
    await holder.holds()
    clock.set(86_400)
    const next = start(['env', ...env, ...command])
    await inLine(name, 2)
    clock.set(-86_400)
    // Two lengths of the lease, in which it has to be renewed.
    await pass(2 * TTL_S * 1000)
    expect(next.said).toBe('')
    holder.release()
    await holder.says('kept')
    await next.holds()
    next.release()
    await next.says('kept')
    await Promise.all([holder.ended, next.ended])
  })

  async function claims(name: string): Promise<string[]> {
    const text = await server.ctl('get', '--prefix', '--keys-only', `${name}/`)
    return text.split('\n').filter((line) => line !== '')
  }

  function inLine(name: string, count: number): Promise<void> {
    return eventually(`${count} claims of ${name}`, async () => (await claims(name)).length === count)
  }
})
