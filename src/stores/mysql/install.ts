import { HoldfastError } from '../../base/errors.js'
import type { Lent } from './driver.js'
import { isMadeAlready, isSchemaMissing } from './failures.js'
import { SCHEMA_VERSION, SQL_MODE, schemaStatements } from './schema.js'
import type { MysqlNames } from './sql/names.js'

/** The part of a connection that the installation uses. */
type Asked = Pick<Lent, 'query'>

/** Longer than creating the schema takes, and shorter than a caller waits for the first answer. */
const PATIENCE_SECONDS = 10

/** Creates the schema if it is missing or older. */
export async function ensureSchema(connection: Asked, names: MysqlNames): Promise<void> {
  if (!(await isReady(connection, names))) await makeSchema(connection, names)
}

/**
 * Creates what is missing of the schema. One process at a time: the others then find everything.
 */
export async function makeSchema(connection: Asked, names: MysqlNames): Promise<void> {
  // All databases of a server share the names of GET_LOCK, of at most 64 characters.
  const lock = `CONCAT('holdfast ', MD5(CONCAT(DATABASE(), '.${names.line}')))`
  const [isLocked] = await connection.query(`SELECT GET_LOCK(${lock}, ${PATIENCE_SECONDS})`)
  if (isLocked !== '1') throw busyMaking()
  try {
    // A routine keeps the mode in which it was created, and some modes change the language.
    await connection.query(`SET @holdfast_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = '${SQL_MODE}'`)
    for (const statement of schemaStatements(names)) await makeOnce(connection, statement)
  } finally {
    await connection.query('SET SESSION sql_mode = COALESCE(@holdfast_sql_mode, @@SESSION.sql_mode)')
    await connection.query(`SELECT RELEASE_LOCK(${lock})`)
  }
}

async function makeOnce(connection: Asked, statement: string): Promise<void> {
  try {
    await connection.query(statement)
  } catch (error) {
    if (!isMadeAlready(error)) throw error
  }
}

function busyMaking(): HoldfastError {
  const message = 'Another process is creating the schema of Holdfast'
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'mysql', retryable: true })
}

async function isReady(connection: Asked, names: MysqlNames): Promise<boolean> {
  const version = await versionOf(connection, names)
  if (version > SCHEMA_VERSION) {
    const message = `The schema was made by a newer Holdfast (version ${version}, this one knows ${SCHEMA_VERSION}); update this one`
    throw new HoldfastError('UNSUPPORTED', message, { store: 'mysql' })
  }
  return version === SCHEMA_VERSION
}

/** 0: there is none. */
async function versionOf(connection: Asked, { version }: MysqlNames): Promise<number> {
  try {
    const [found] = await connection.query(`SELECT version FROM ${version}`)
    return Number(found ?? 0)
  } catch (error) {
    if (isSchemaMissing(error)) return 0
    throw error
  }
}
