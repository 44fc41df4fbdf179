import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Judgement, judge } from '../../proof/judge/index.js'
import { PLANTED_BUGS, type PlantedBug, runPlanted } from '../../proof/planted/index.js'
import type { Store } from '../../src/contract/store.js'
import { etcd } from '../../src/stores/etcd/index.js'
import { memcached } from '../../src/stores/memcached/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { mysql } from '../../src/stores/mysql/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { describeOn, type ServerName } from '../servers/availability.js'
import { startEtcd } from '../servers/etcd.js'
import { startMariadb } from '../servers/mariadb.js'
import { startMemcached } from '../servers/memcached.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'
import { describeWithPorcupine } from './porcupine.js'

/** Where the bugs are planted: opens so many independent stores. */
interface Ground {
  open(count: number): Store[]
  close(): Promise<void>
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-planted-'))
let files = 0
const nextFile = (): string => join(folder, String(++files))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function judged(bug: PlantedBug, ground: Ground, isPlanted: boolean): Promise<Judgement> {
  const text = await runPlanted(bug, ground.open(bug.members ?? 1), isPlanted)
  const file = nextFile()
  writeFileSync(file, text)
  const { patienceMs } = bug
  return judge(file, patienceMs === undefined ? {} : { patienceMs })
}

function bugsOn(start: () => Promise<Ground>, bugs: readonly PlantedBug[] = PLANTED_BUGS): void {
  let ground: Ground
  beforeAll(async () => {
    ground = await start()
  })
  afterAll(() => ground?.close())

  it.concurrent.each(bugs)('find $title, and nothing without it', async (bug) => {
    const [planted, control] = await Promise.all([judged(bug, ground, true), judged(bug, ground, false)])
    expect(planted.violations.map(({ rule }) => rule)).toContain(bug.rule)
    expect(planted.porcupine.verdict).toBe('violated')
    expect(planted.differences).toEqual([])
    expect(control).toMatchObject({ verdict: 'passed', violations: [], differences: [] })
  })
}

async function nothingToClose(): Promise<void> {}

const several = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))

/** Private servers, each with a store on it. */
async function grounds<S extends { stop(): Promise<void> }>(
  count: number,
  start: () => Promise<S>,
  storeOn: (server: S) => Store,
): Promise<Ground> {
  const servers = await Promise.all(several(count, start))
  return {
    open: (needed) => servers.slice(0, needed).map(storeOn),
    close: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  }
}

const ON_ONE_STORE = PLANTED_BUGS.filter(({ members }) => members === undefined)
const WITHOUT_LAPSE = ON_ONE_STORE.filter(({ needsLapse }) => !needsLapse)

/** With HOLDFAST_TEST_ALL=1. */
const OTHERS: readonly [ServerName, () => Promise<Ground>, readonly PlantedBug[]][] = [
  ['postgres', () => grounds(1, startPostgres, ({ url }) => postgres(url)), ON_ONE_STORE],
  ['mariadb', () => grounds(1, startMariadb, ({ url }) => mysql(url)), ON_ONE_STORE],
  ['memcached', () => grounds(1, startMemcached, ({ address }) => memcached(address)), ON_ONE_STORE],
  ['etcd', () => grounds(1, startEtcd, ({ address }) => etcd(address)), WITHOUT_LAPSE],
  ['zookeeper', () => grounds(1, startZooKeeper, ({ address }) => zookeeper(address)), WITHOUT_LAPSE],
]

describeWithPorcupine('both judges', () => {
  describe('on the memory store', () =>
    bugsOn(async () => ({ open: (count) => several(count, () => memory()), close: nothingToClose })))

  describe('on SQLite', () =>
    bugsOn(async () => ({
      open: (count) => several(count, () => sqlite(`${nextFile()}.db`)),
      close: nothingToClose,
    })))

  describeOn('redis', 'on Redis', () => bugsOn(() => grounds(3, startRedis, ({ url }) => redis(url))))

  for (const [name, start, bugs] of OTHERS)
    if (process.env['HOLDFAST_TEST_ALL'] === '1') describeOn(name, `on ${name}`, () => bugsOn(start, bugs))
})
