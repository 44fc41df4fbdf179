import pg from 'pg'
import postgresJs from 'postgres'

export type Pool = pg.Pool | postgresJs.Sql

/** A pool as an application has it. */
export function openPool(driver: 'pg' | 'postgres', url: string, max: number): Pool {
  if (driver === 'postgres') return postgresJs(url, { max, onnotice: () => {} })
  return openPgPool(url, max)
}

/** Its end resolves before the goodbyes have reached the server, which may stop first and says so: an error that nobody else hears. */
export function openPgPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  return pool
}
