/**
 * Drops the warning of Node 22 and later that `node:sqlite` is experimental: the user of `holdfast`
 * did not choose that module. All other warnings are shown.
 */
export function hideSqliteWarning(): void {
  const emitWarning = process.emitWarning.bind(process) as (...args: unknown[]) => void
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (isAboutSqlite(warning, rest[0])) return
    emitWarning(warning, ...rest)
  }
}

function isAboutSqlite(warning: string | Error, kind: unknown): boolean {
  const name =
    warning instanceof Error ? warning.name : ((kind as { type?: string } | undefined)?.type ?? kind)
  return name === 'ExperimentalWarning' && /\bSQLite\b/i.test(String(warning))
}
