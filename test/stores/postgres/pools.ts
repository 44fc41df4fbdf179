import pg from 'pg'
import postgresJs from 'postgres'

export type Pool = pg.Pool | postgresJs.Sql

/** A pool as an application has it. */
export function openPool(driver: 'pg' | 'postgres', url: string, max: number): Pool {
  if (driver === 'postgres') return postgresJs(url, { max, onnotice: () => {} })
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  return pool
}
