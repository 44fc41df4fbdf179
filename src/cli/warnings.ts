/**
 * Node 22 and later warn that `node:sqlite` is experimental. Whoever runs `holdfast` did not choose that module and can do
 * nothing about it, so this one warning is dropped; every other one still comes through.
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
