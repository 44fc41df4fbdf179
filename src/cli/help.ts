const STORE_HELP = `  --store URL      where the locks are: sqlite:PATH, redis://HOST:PORT, zookeeper://HOST:PORT,
                   postgres://HOST/DATABASE, mysql://HOST/DATABASE,
                   quorum:URL,URL,URL (a majority of 3, 5 or 7 servers), …
                   (default: $HOLDFAST_STORE, else ~/.local/state/holdfast/locks.db)
  --space NAME     separates applications that share a store`

const GENERAL = `holdfast: run commands under a lock, see who holds it, break it, check the store

Usage:
  holdfast run NAME [options] -- COMMAND [ARGUMENT …]
  holdfast ls [--prefix TEXT] [--all-spaces] [--json]
  holdfast break NAME [--fence N]
  holdfast doctor [--strict] [--json]
  holdfast schema mysql|postgres
  holdfast COMMAND --help
  holdfast --version

Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run deploy --wait 5m -- ./deploy.sh production
  holdfast ls

Environment:
  HOLDFAST_STORE   the store, if --store is not given; for example sqlite:/var/lib/app/locks.db
  HOLDFAST_DEBUG   1 shows the stack of an error

Exit codes:
   0  done                         75  not acquired: busy, or the wait timed out
   1  break: nothing was held,     76  the lock was lost while the command ran
      doctor: a fault was found   126  the command cannot be executed
  64  wrong usage                 127  the command was not found
  69  store unavailable
  70  an unexpected error       128+n  ended by signal n
  Otherwise 'holdfast run' exits with the code of the command.
`

const RUN = `holdfast run: run a command under a lock

Usage:
  holdfast run NAME [options] -- COMMAND [ARGUMENT …]

Waits in line for the lock NAME, runs the command, and releases the lock when the command and
everything it started have ended. Background processes that the command leaves are ended, too.
If the lock is lost, all its processes are ended: SIGTERM, after the grace period SIGKILL.

Options:
  --wait DURATION      how long to wait in line (default: no limit)
  --try                do not wait at all
  --lease DURATION     how long the lock stays taken if holdfast is killed (default 30s)
  --max-hold DURATION  the lock is lost after this time in any case (default: none)
  --grace DURATION     time between SIGTERM and SIGKILL when the command has to end (default 10s)
  --label TEXT         what 'holdfast ls' shows (default: the command's name)
  --store URL          where the locks are: sqlite:PATH, redis://HOST:PORT, zookeeper://HOST:PORT,
                       postgres://HOST/DATABASE, mysql://HOST/DATABASE,
                       quorum:URL,URL,URL (a majority of 3, 5 or 7 servers), …
                       (default: $HOLDFAST_STORE, else ~/.local/state/holdfast/locks.db)
  --space NAME         separates applications that share a store
  Durations: 500ms, 30s, 5m, 2h, 1d.

The command gets:
  HOLDFAST_FENCE       the fence of the hold, for resources that can refuse a stale one
  HOLDFAST_RESOURCE    the NAME
  HOLDFAST_RUN         the id of this run

Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run deploy --wait 5m --label "$USER" -- ./deploy.sh production
  holdfast run sync --try -- rsync -a src/ backup/ || [ $? -eq 75 ]
  HOLDFAST_STORE=redis://locks.internal:6379 holdfast run migrate -- npm run migrate

Exit codes:
  the command's own, 128+n if signal n ended it, or
  64  wrong usage                 76  the lock was lost while the command ran
  69  store unavailable          126  the command cannot be executed
  75  not acquired: busy, or     127  the command was not found
      the wait timed out
`

const LS = `holdfast ls: who holds, who waits

Usage:
  holdfast ls [--prefix TEXT] [--all-spaces] [--json] [options]

Options:
  --prefix TEXT    only resources whose name starts with TEXT
  --all-spaces     every space of the store instead of one
  --json           one JSON array, with dates in ISO 8601
${STORE_HELP}

Examples:
  holdfast ls
  holdfast ls --prefix order: --json
  holdfast ls --all-spaces
  HOLDFAST_STORE=sqlite:/var/lib/app/locks.db holdfast ls

Exit codes:
   0  done, also when nothing is held
  64  wrong usage
  69  store unavailable
`

const BREAK = `holdfast break: revoke the holds of a lock

Usage:
  holdfast break NAME [--fence N] [options]

The previous holder is told, and its command under 'holdfast run' is ended. The next in line gets
the lock.

Options:
  --fence N        only the hold with this fence, as shown by 'holdfast ls', and none that was
                   granted in the meantime
${STORE_HELP}

Examples:
  holdfast break deploy
  holdfast break deploy --fence 1794772800000123

Exit codes:
   0  broken; the output says whose hold it was
   1  nothing was held
  64  wrong usage
  69  store unavailable
`

const DOCTOR = `holdfast doctor: check the live store and report risks

Usage:
  holdfast doctor [--strict] [--json] [options]

Options:
  --strict         exit with 1 for risks as well, not only for faults
  --json           one JSON array of findings: level (fine, risk, fault), about, text
${STORE_HELP}

Examples:
  holdfast doctor
  holdfast doctor --strict --store redis://locks.internal:6379

Exit codes:
   0  no fault; the output lists risks, if any
   1  a fault, or with --strict a risk; the output says what to do
  64  wrong usage
  69  store unavailable
`

const SCHEMA = `holdfast schema: print the SQL that creates the tables and routines of a store

Usage:
  holdfast schema mysql|postgres [--schema NAME]

A store creates its tables and routines on first use. If the application may not create them,
let an administrator run this SQL. It changes nothing where everything exists already.

Options:
  --schema NAME    the schema to create (default holdfast); the application names it with
                   postgres://…?schema=NAME. With MySQL: the prefix of all tables and
                   routines, as in mysql://…?prefix=NAME

Examples:
  holdfast schema postgres | psql postgres://admin@db.internal/app
  holdfast schema mysql | mysql --user admin app
  holdfast schema postgres > migrations/0042_holdfast.sql

Exit codes:
   0  done
  64  wrong usage
`

const OF_COMMAND: Readonly<Record<string, string>> = {
  run: RUN,
  ls: LS,
  break: BREAK,
  doctor: DOCTOR,
  schema: SCHEMA,
}

/** The help of one command, or the general one. */
export function helpFor(command?: string): string {
  return (command !== undefined && OF_COMMAND[command]) || GENERAL
}
