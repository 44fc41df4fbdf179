// The conformance suite of the built package on any runtime: `RUNTIME run-cases.mjs PLAN RESULT`.
// PLAN and RESULT are files with JSON; plan.ts has their types.
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dealt, plainTitle } from '../conformance/deal.mjs'
import { membersOf } from '../stores/quorum/members.mjs'
import { spaced } from '../stores/spaced.mjs'

const SIDE_BY_SIDE = 12
const dist = (name) => import(`../../dist/import/${name}.mjs`)
const { conformanceCases } = await dist('testing')
const { Holdfast } = await dist('index')
const moduleAt = (path) => new URL(path, import.meta.url).href

const [planFile, resultFile] = process.argv.slice(2)
const { store, urls, options, limits, skips, share } = JSON.parse(readFileSync(planFile, 'utf8'))
const [url] = urls

/** How to get a fresh place for each case: `open`, and what the subject needs beside it. */
const STORES = {
  async memory() {
    const { memory } = await dist('memory')
    const open = async () => {
      const one = memory()
      return { store: () => one, dispose: async () => {} }
    }
    return { open, oneProcess: 'the lines of a memory store are in one process' }
  },

  async sqlite() {
    const { sqlite } = await dist('sqlite')
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'))
      const path = join(folder, 'locks.db')
      const dispose = () => rm(folder, { recursive: true, force: true })
      return { store: () => sqlite(path), url: `sqlite:${path}`, dispose }
    }
    return { open }
  },

  async redis() {
    const { redis } = await dist('redis')
    return byUrl(
      (id) => `${url}?driver=${options.driver}&prefix=test-${id}`,
      (own) => redis(own),
    )
  },

  async memcached() {
    const { memcached } = await dist('memcached')
    return byUrl(
      (id) => `${url}?prefix=t-${id}`,
      (_url, id) => memcached(new URL(url).host, { prefix: `t-${id}` }),
    )
  },

  async etcd() {
    const { etcd } = await dist('etcd')
    const own = (id) => ({ ...options, root: `conformance-${id}/` })
    return byUrl(
      (id) => `${url}?${new URLSearchParams(own(id))}`,
      (_url, id) => etcd(new URL(url).host, own(id)),
    )
  },

  async zookeeper() {
    const { zookeeper } = await dist('zookeeper')
    const own = (id) => ({ ...options, root: `/conformance-${id}` })
    return byUrl(
      (id) => `${url}?${new URLSearchParams(own(id))}`,
      (_url, id) => zookeeper(new URL(url).host, own(id)),
    )
  },

  async postgres() {
    const { postgres } = await dist('postgres')
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({ connectionString: url, max: 20 })
    pool.on('error', () => {})
    const inSpace = bySpace(
      () => postgres(pool),
      (prefix) => `${url}?driver=pg&connections=2#${prefix}`,
    )
    return { ...inSpace, storeModule: moduleAt('../stores/postgres/spaced-store.mjs'), end: () => pool.end() }
  },

  async mysql() {
    const { mysql } = await dist('mysql')
    const { createPool } = await import('mysql2/promise')
    const { hostname: host, port, username: user, password, pathname } = new URL(url)
    const where = { host, port: Number(port), user, password, database: pathname.slice(1) }
    const pool = createPool({ ...where, connectionLimit: 40 })
    // Its tables are made before the first case, whose leases may be short.
    await (await Holdfast.open(url)).close()
    const inSpace = bySpace(
      () => mysql(pool),
      (prefix) => `${url}?driver=mysql2&connections=3#${prefix}`,
    )
    return { ...inSpace, storeModule: moduleAt('../stores/mysql/spaced-store.mjs'), end: () => pool.end() }
  },

  async quorum() {
    const { quorum } = await dist('quorum')
    const { redis } = await dist('redis')
    const members = membersOf(urls, { redis }, 20)
    const founder = new Holdfast(quorum(members, options))
    await founder.mutex('founding').run(() => {}, { lease: '1s' })
    await founder.close()
    const inSpace = bySpace(
      () => quorum(members, options),
      (prefix) => JSON.stringify({ urls, options, prefix }),
    )
    return { ...inSpace, storeModule: moduleAt('../stores/quorum/spaced-store.mjs') }
  },
}

function byUrl(urlOf, make) {
  const open = async () => {
    const id = randomUUID().slice(0, 13)
    return { store: () => make(urlOf(id), id), url: urlOf(id), dispose: async () => {} }
  }
  return { open }
}

function bySpace(make, urlOf) {
  const open = async () => {
    const prefix = `${randomUUID()}/`
    return { store: () => spaced(make(), prefix), url: urlOf(prefix), dispose: async () => {} }
  }
  return { open }
}

// It ends with the run that started it.
process.stdin.on('end', () => process.exit(1)).resume()

/** What failed at the first attempt. */
const late = []
const strays = []
const outcome = { passed: 0, again: [], failed: [], skipped: {} }
process.on('unhandledRejection', (error) => stray('an unhandled rejection', error))
process.on('uncaughtException', (error) => stray('an uncaught error', error))

const { end, ...subject } = await STORES[store]()
const cases = dealt(conformanceCases({ name: store, ...limits, ...subject }), share)
const toRun = cases.filter((each) => {
  const reason = skips[each.title] ?? skips[plainTitle(each)] ?? each.skip
  if (reason !== undefined) outcome.skipped[reason] = (outcome.skipped[reason] ?? 0) + 1
  return reason === undefined
})
const queue = toRun.filter((each) => !each.alone)
const worker = async () => {
  for (let next = queue.shift(); next; next = queue.shift()) if (!(await passes(next))) late.push(next)
}
await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
for (const each of toRun.filter(({ alone }) => alone)) if (!(await passes(each))) late.push(each)
// A second attempt, alone: some have to do with time, and the machine may be busy.
for (const each of late)
  if (await passes(each, (error) => complain(each.title, error))) outcome.again.push(each.title)
for (const { what, isCheck } of strays) if (!isCheck || late.length === 0) outcome.failed.push(what)
await end?.()
writeFileSync(resultFile, JSON.stringify({ ...outcome, cases: toRun.length }))
process.exit(0)

async function passes(each, onError = () => {}) {
  try {
    await each.run()
    outcome.passed += 1
    return true
  } catch (error) {
    console.error(`${each.title}: ${error?.stack ?? error}`)
    onError(error)
    return false
  }
}

/**
 * Errors that nobody waited for. A failed check may belong to a case that failed otherwise, too: it
 * is tried again with the case.
 */
function stray(what, error) {
  console.error(`${what}: ${error?.stack ?? error}`)
  strays.push({ what, isCheck: error?.code === 'ERR_ASSERTION' })
}

function complain(what, error) {
  console.error(`${what}: ${error?.stack ?? error}`)
  outcome.failed.push(what)
}
