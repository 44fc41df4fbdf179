import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'
import { java, node, obstacles, Peer, python } from './zookeeper/peers.js'

const TURNS = 60
const COUNTERS = {
  curator: { command: java('CuratorCounter.java'), obstacle: obstacles.curator, reads: true },
  kazoo: { command: python('kazoo_counter.py'), obstacle: obstacles.kazoo, reads: false },
  ours: { command: node('counter.mjs'), obstacle: null, reads: true },
}
const CREWS: Record<string, readonly (keyof typeof COUNTERS)[]> = {
  'Curator and two of ours': ['curator', 'ours', 'ours'],
  'Kazoo and two of ours': ['kazoo', 'ours', 'ours'],
  'Curator, Kazoo and two of ours': ['curator', 'kazoo', 'ours', 'ours'],
}

describeOn('zookeeper', 'processes that count under one lock', () => {
  let ensemble: ZooKeeperEnsemble
  let folder: string
  const peers: Peer[] = []
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-peers-'))
  })
  afterEach(() => {
    for (const peer of peers.splice(0)) peer.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  afterAll(() => ensemble?.stop())

  for (const kind of ['mutex', 'read-write'])
    for (const [title, crew] of Object.entries(CREWS)) {
      const reasons = new Set(crew.map((name) => COUNTERS[name].obstacle).filter((reason) => reason !== null))
      const why = reasons.size > 0 ? ` (skipped: ${[...reasons].join(', ')})` : ''
      it.skipIf(reasons.size > 0)(`${kind}: ${title} lose nothing${why}`, { timeout: 120_000 }, async () => {
        for (const file of ['left', 'right']) writeFileSync(join(folder, file), '0')
        const path = `/peers/${kind} of ${crew.join(' ')}`.replaceAll(' ', '-')
        const args = [ensemble.address, path, folder, kind, String(TURNS)]
        for (const name of crew) peers.push(new Peer(COUNTERS[name].command, ...args))
        for (const peer of peers) await peer.says('ready')
        for (const peer of peers) peer.goOn()
        const outcomes = await Promise.all(peers.map((peer) => peer.ended))
        expect(outcomes).toEqual(crew.map(() => ({ code: 0, complaint: '' })))
        const writes = crew.map((name) => (kind === 'mutex' || !COUNTERS[name].reads ? TURNS : TURNS / 2))
        const total = String(writes.reduce((sum, count) => sum + count))
        expect(readFileSync(join(folder, 'left'), 'utf8')).toBe(total)
        expect(readFileSync(join(folder, 'right'), 'utf8')).toBe(total)
      })
    }
})
