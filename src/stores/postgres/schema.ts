import { advisorySql } from './sql/advisory.js'
import { boundedSql } from './sql/bounded.js'
import { callsSql } from './sql/calls.js'
import { fastPathSql } from './sql/fast-path.js'
import { inspectSql } from './sql/inspect.js'
import { lineSql } from './sql/line.js'
import { operateSql } from './sql/operate.js'
import { pulseSql } from './sql/pulse.js'
import { rowLockSql } from './sql/row-lock.js'
import { stateSql } from './sql/state.js'
import { tablesSql } from './sql/tables.js'

/** Raised with every released change of the tables or routines. */
export const SCHEMA_VERSION = 1

/** The advisory lock of the installation: "Holdfast" in ASCII, as a number. */
const INSTALL_LOCK = '5219509671615886196'

/** What each version adds to the previous one. */
const STEPS: readonly string[] = [
  [
    tablesSql,
    lineSql,
    callsSql,
    fastPathSql,
    pulseSql,
    operateSql,
    stateSql,
    inspectSql,
    rowLockSql,
    advisorySql,
  ].join(''),
]

/**
 * What was added to the present version since, each with a routine of it: where that is missing, it
 * is created. A new version would shut out clients that do not need it.
 */
const ADDITIONS: readonly (readonly [routine: string, sql: string])[] = [['take_bounded', boundedSql]]

/** A quoted identifier. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Moves SQL that is written for the schema `holdfast` to another one. */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('holdfast.', `${quote(schema)}.`)
}

/** What `holdfast schema postgres` prints: for `psql`, or a migration. */
export function schemaText(schema: string): string {
  return `BEGIN;\n${installText(schema)}COMMIT;\n`
}

/**
 * Creates the schema, or migrates an older one; several clients may do so at once. It changes
 * nothing where the schema is up to date. Sent as one text, it is one transaction.
 */
export function installText(schema: string): string {
  const from = STEPS.map((step, version) => stepText(step, version, schema)).join('')
  const additions = ADDITIONS.map(([routine, sql]) => additionText(routine, sql, schema)).join('')
  return `SELECT pg_advisory_xact_lock(${INSTALL_LOCK});
DO $holdfast$
DECLARE
  known integer;
BEGIN
  IF to_regnamespace(${literal(quote(schema))}) IS NULL THEN
    CREATE SCHEMA ${quote(schema)};
  END IF;
  IF to_regclass(${literal(`${quote(schema)}.meta`)}) IS NULL THEN
    known := 0;
  ELSE
    SELECT version INTO known FROM ${quote(schema)}.meta;
  END IF;
${from}${additions}END $holdfast$;
`
}

function stepText(step: string, version: number, schema: string): string {
  const record =
    version === 0
      ? 'INSERT INTO holdfast.meta (version) VALUES (1);'
      : `UPDATE holdfast.meta SET version = ${version + 1};`
  return `  IF known <= ${version} THEN\n${inSchema(step + record, schema)}\n  END IF;\n`
}

function additionText(routine: string, sql: string, schema: string): string {
  const name = literal(`${quote(schema)}.${quote(routine)}`)
  return `  IF to_regproc(${name}) IS NULL THEN\n${inSchema(sql, schema)}\n  END IF;\n`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
