// Waits for a session lock that somebody else has: node session-waiter.mjs STORE URL NAME
import { sessionLock } from 'holdfast/mysql'
import { advisory } from 'holdfast/postgres'
import { createPool } from 'mysql2/promise'
import pg from 'pg'

const [, , store, url, name] = process.argv
const locks =
  store === 'mysql' ? sessionLock(createPool(url)) : advisory(new pg.Pool({ connectionString: url }))
await locks.acquire(name)
process.send('entered')
