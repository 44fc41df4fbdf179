import { boundedCallsRoutine, callsRoutine, joinRoutine, leaveRoutine } from './sql/calls.js'
import { type MysqlNames, namesOf } from './sql/names.js'
import { cancelRoutine, evictRoutine, resizeRoutine } from './sql/operate.js'
import { pulseRoutine } from './sql/pulse.js'
import { sessionLockRoutine } from './sql/session-lock.js'
import { readRoutine, statesRoutine, writeRoutine } from './sql/state.js'
import { sweepRoutine } from './sql/sweep.js'
import { tables } from './sql/tables.js'
import { viewRoutine } from './sql/view.js'

export const SCHEMA_VERSION = 1

/** The mode that the routines are written for: a value that does not fit is an error. */
export const SQL_MODE = 'STRICT_ALL_TABLES'

const ROUTINES: Readonly<Record<string, (names: MysqlNames) => string>> = {
  join: joinRoutine,
  leave: leaveRoutine,
  calls: callsRoutine,
  bounded_calls: boundedCallsRoutine,
  pulse: pulseRoutine,
  evict: evictRoutine,
  cancel: cancelRoutine,
  resize: resizeRoutine,
  read: readRoutine,
  write: writeRoutine,
  states: statesRoutine,
  view: viewRoutine,
  sweep: sweepRoutine,
  session_lock: sessionLockRoutine,
}

/**
 * The statements that create the schema, in order. Each can be repeated: DDL commits by itself, so
 * a process that dies between two of them leaves the rest to others. The version comes last: where
 * it is, everything else is.
 */
export function schemaStatements(names: MysqlNames): string[] {
  const routines = Object.values(ROUTINES).map((make) => make(names))
  const version = `INSERT INTO ${names.version} (one, version, swept) VALUES (1, ${SCHEMA_VERSION}, 0) ON DUPLICATE KEY UPDATE version = ${SCHEMA_VERSION}`
  return [...tables(names), ...routines, version]
}

/** The schema as a script for `mysql` or `mariadb`, where applications may not create tables. */
export function schemaText(prefix: string | undefined): string {
  const names = namesOf(prefix)
  const removal = Object.keys(ROUTINES).map((name) => `DROP PROCEDURE IF EXISTS ${names.routine(name)}`)
  const statements = [...removal, ...schemaStatements(names)].map((sql) => `${sql}//\n`)
  return `SET SESSION sql_mode = '${SQL_MODE}';\nDELIMITER //\n\n${statements.join('\n')}\nDELIMITER ;\n`
}
