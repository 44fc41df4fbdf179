import { invalid } from '../../../base/errors.js'

/** The names of the tables and routines of one schema: `holdfast_line`. */
export interface MysqlNames {
  readonly line: string
  readonly claim: string
  readonly news: string
  readonly state: string
  readonly version: string
  readonly rowLock: string
  readonly sessionLock: string
  /** A routine. */
  routine(name: string): string
}

export function namesOf(prefix: unknown = 'holdfast'): MysqlNames {
  // Routines and tables may have names of 64 characters.
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9_]{1,50}$/.test(prefix))
    throw invalid(`prefix is '${String(prefix)}', but must be up to 50 letters, digits or underscores`)
  const quoted = (name: string): string => `\`${prefix}_${name}\``
  return {
    line: quoted('line'),
    claim: quoted('claim'),
    news: quoted('news'),
    state: quoted('state'),
    version: quoted('version'),
    rowLock: quoted('row_lock'),
    sessionLock: quoted('session_fence'),
    routine: quoted,
  }
}
