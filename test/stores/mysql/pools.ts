import * as mariadb from 'mariadb'
import mysql2 from 'mysql2/promise'

export type DriverName = 'mysql2' | 'mariadb'
export type Pool = mysql2.Pool | mariadb.Pool

/** A pool as an application has it. */
export function openPool(driver: DriverName, url: string, most: number): Pool {
  const { hostname: host, port, username: user, pathname } = new URL(url)
  const where = { host, port: Number(port), user, database: pathname.slice(1), connectionLimit: most }
  return driver === 'mysql2' ? mysql2.createPool(where) : mariadb.createPool(where)
}
