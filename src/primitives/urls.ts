import { invalid } from '../base/errors.js'
import { withoutLogins } from '../base/urls.js'
import type { Store } from '../contract/store.js'

type Opener = (rest: string) => Promise<Store>

/** A store's module is loaded on demand, so importing `holdfast` loads no driver. */
const SCHEMES: Readonly<Record<string, Opener>> = {
  etcd: async (rest) => (await import('../stores/etcd/index.js')).etcdFromUrl(rest),
  memcached: async (rest) => (await import('../stores/memcached/index.js')).memcachedFromUrl(rest),
  memory: async (name) => sharedMemory(name),
  mysql: async (rest) => openMysql('mysql', rest),
  mariadb: async (rest) => openMysql('mariadb', rest),
  postgres: async (rest) => openPostgres('postgres', rest),
  postgresql: async (rest) => openPostgres('postgresql', rest),
  quorum: async (rest) => openQuorum(rest),
  redis: async (rest) => openRedis('redis', rest),
  rediss: async (rest) => openRedis('rediss', rest),
  'redis+sentinel': async (rest) => openRedis('redis+sentinel', rest),
  'rediss+sentinel': async (rest) => openRedis('rediss+sentinel', rest),
  'redis+cluster': async (rest) => openRedis('redis+cluster', rest),
  'rediss+cluster': async (rest) => openRedis('rediss+cluster', rest),
  sqlite: async (rest) => openSqlite(rest),
  zookeeper: async (rest) => (await import('../stores/zookeeper/index.js')).zookeeperFromUrl(rest),
}

/** The memory stores of this process: the same URL means the same store. */
const memories = new Map<string, Store>()

async function sharedMemory(name: string): Promise<Store> {
  const { memory } = await import('../stores/memory/index.js')
  const store = memories.get(name) ?? memory()
  memories.set(name, store)
  return store
}

async function openMysql(scheme: string, rest: string): Promise<Store> {
  return (await import('../stores/mysql/index.js')).mysql(`${scheme}:${rest}`)
}

async function openPostgres(scheme: string, rest: string): Promise<Store> {
  return (await import('../stores/postgres/index.js')).postgres(`${scheme}:${rest}`)
}

/** Members are separated by commas; a comma inside a member's URL is not followed by a scheme. */
async function openQuorum(rest: string): Promise<Store> {
  const members = rest.split(/,(?=[a-z][a-z0-9+.-]*:)/i).map((url) => url.trim())
  if (members.some((url) => /^quorum:/i.test(url))) throw invalid('A quorum cannot be a member of a quorum')
  const { quorum } = await import('../stores/quorum/index.js')
  return quorum(await Promise.all(members.map(storeFromUrl)))
}

async function openSqlite(rest: string): Promise<Store> {
  // Parameters would become part of the file name, and lead to other locks.
  if (/\?\w+=/.test(rest)) throw invalid('A sqlite: URL has no parameters; write sqlite:PATH')
  return (await import('../stores/sqlite/index.js')).sqlite(rest.replace(/^\/\/(?=\/)/, ''))
}

async function openRedis(scheme: string, rest: string): Promise<Store> {
  return (await import('../stores/redis/index.js')).redis(`${scheme}:${rest}`)
}

export async function storeFromUrl(url: unknown): Promise<Store> {
  const match = typeof url === 'string' ? /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) : null
  const open =
    match?.[1] === undefined
      ? undefined
      : Object.entries(SCHEMES).find(([scheme]) => scheme === match[1]?.toLowerCase())?.[1]
  if (!match || !open) {
    const known = Object.keys(SCHEMES).map((scheme) => `${scheme}:`)
    throw invalid(
      `'${withoutLogins(String(url))}' is not the URL of a store that Holdfast knows; use one of ${known.join(', ')} (for example sqlite:./locks.db)`,
    )
  }
  return open(match[2] ?? '')
}
