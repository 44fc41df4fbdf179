import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import pg from 'pg'
import { etcdServers } from '../../bench/etcd-server.mjs'
import { memcachedServer } from '../../bench/memcached-server.mjs'
import { mysqlServer } from '../../bench/mysql-server.mjs'
import { postgresServer } from '../../bench/postgres-server.mjs'
import { redisServer } from '../../bench/redis-server.mjs'
import { zookeeperServers } from '../../bench/zookeeper-server.mjs'

/**
 * The stores that can be loaded. `start` gives the address of a private one; `count` says how many
 * keys, rows or nodes are in it. `strictWaiters`: how many places a line may have in a test.
 */
export const STORES = {
  redis: { start: () => redisServer({ own: true }), count: countInRedis, strictWaiters: 100_000 },
  sqlite: { start: sqliteFile, count: countInSqlite, strictWaiters: 100_000 },
  postgres: { start: postgresServer, count: countInPostgres, strictWaiters: 100_000 },
  mariadb: { start: mysqlServer, count: countInMysql, strictWaiters: 20_000 },
  etcd: {
    start: async () => addressed('etcd', await etcdServers(1)),
    count: countInEtcd,
    strictWaiters: 5_000,
  },
  zookeeper: {
    start: async () => addressed('zookeeper', await zookeeperServers(1)),
    count: countInZooKeeper,
    strictWaiters: 2_000,
  },
  memcached: {
    start: async () => addressed('memcached', await memcachedServer()),
    count: countInMemcached,
    strictWaiters: 500,
  },
}

function addressed(scheme, { address, stop }) {
  return { url: `${scheme}://${address}`, stop }
}

async function sqliteFile() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-load-'))
  const stop = async () => rmSync(folder, { recursive: true, force: true })
  return { url: `sqlite:${join(folder, 'locks.db')}`, stop }
}

async function countInRedis(url) {
  const client = new Redis(url)
  try {
    return await client.dbsize()
  } finally {
    client.disconnect()
  }
}

async function countInSqlite(url) {
  const { default: Database } = await import('libsql')
  const database = new Database(url.slice('sqlite:'.length), { readonly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    return sum(tables.map(({ name }) => database.prepare(`SELECT count(*) AS n FROM "${name}"`).get().n))
  } finally {
    database.close()
  }
}

async function countInPostgres(url) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const tables = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
    const counts = []
    for (const { tablename } of tables.rows)
      counts.push((await client.query(`SELECT count(*)::int AS n FROM holdfast.${tablename}`)).rows[0].n)
    return sum(counts)
  } finally {
    await client.end()
  }
}

async function countInMysql(url) {
  const connection = await createConnection(url)
  try {
    const [tables] = await connection.query(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = database()',
    )
    const counts = []
    for (const { name } of tables) {
      const [[row]] = await connection.query(`SELECT count(*) AS n FROM \`${name}\``)
      counts.push(Number(row.n))
    }
    return sum(counts)
  } finally {
    await connection.end()
  }
}

function countInEtcd(url) {
  const args = ['--endpoints', url.slice('etcd://'.length), 'get', '', '--prefix', '--keys-only']
  const options = { encoding: 'utf8', env: { ...process.env, ETCDCTL_API: '3' }, maxBuffer: 2 ** 28 }
  return execFileSync('etcdctl', args, options).split('\n').filter(Boolean).length
}

/** By the server's own figures, asked for over its port. */
async function countInZooKeeper(url) {
  return Number(/Node count: (\d+)/.exec(await ask(url, 'srvr'))?.[1])
}

async function countInMemcached(url) {
  return Number(/STAT curr_items (\d+)/.exec(await ask(url, 'stats\r\nquit\r\n'))?.[1])
}

async function ask(url, question) {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write(question)
  let answer = ''
  for await (const bytes of socket) answer += bytes
  return answer
}

function sum(figures) {
  return figures.reduce((total, each) => total + each, 0)
}
