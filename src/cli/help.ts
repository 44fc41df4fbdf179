const STORE_HELP = `  --store URL      where the locks are: sqlite:PATH, redis://HOST:PORT, zookeeper://HOST:PORT,
                   etcd://HOST:PORT, memcached://HOST:PORT,
                   postgres://HOST/DATABASE, mysql://HOST/DATABASE,
                   quorum:URL,URL,URL (a majority of 3, 5 or 7 servers), …
                   (default: $HOLDFAST_STORE, else ~/.local/state/holdfast/locks.db)
  --space NAME     separates applications that share a store (default: 'default')`

const GENERAL = `holdfast: run commands under a lock, see who holds it, break it, check the store, serve a dashboard

Usage:
  holdfast run NAME [options] -- COMMAND [ARGUMENT …]
  holdfast ls [--prefix TEXT] [--all-spaces] [--json]
  holdfast top [--prefix TEXT] [--interval DURATION] [--json]
  holdfast watch NAME [--json]
  holdfast break NAME [--fence N | --waiter ID]
  holdfast doctor [--strict] [--json]
  holdfast serve [--port N] [--token-file FILE] [--allow-changes]
  holdfast schema mysql|postgres
  holdfast COMMAND --help
  holdfast --version

Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run deploy --wait 5m -- ./deploy.sh production
  holdfast ls

Environment:
  HOLDFAST_STORE   the store, if --store is not given; for example sqlite:/var/lib/app/locks.db
  HOLDFAST_TOKEN   the token of 'holdfast serve', if --token-file is not given
  HOLDFAST_DEBUG   1 shows the stack of an error

Exit codes:
   0  done                         75  not acquired: busy, timed out, cancelled,
                                       or too many wait already
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

Waits in line for the lock NAME, runs the command, and releases the lock when the command has
ended. Before that, it ends background processes that the command has left. If the lock is lost,
it ends all processes of the command: SIGTERM, after the grace period SIGKILL.

Options:
  --wait DURATION      how long to wait in line (default: no limit)
  --max-waiters N      fail at once if N wait already (default: no limit)
  --try                do not wait at all
  --lease DURATION     how long the lock stays taken if holdfast is killed (default 30s)
  --max-hold DURATION  the lock is lost after this time in any case (default: none)
  --grace DURATION     time between SIGTERM and SIGKILL when the command has to end (default 10s)
  --label TEXT         what 'holdfast ls' shows (default: the command's name)
  --store URL          where the locks are: sqlite:PATH, redis://HOST:PORT, zookeeper://HOST:PORT,
                       etcd://HOST:PORT, memcached://HOST:PORT,
                       postgres://HOST/DATABASE, mysql://HOST/DATABASE,
                       quorum:URL,URL,URL (a majority of 3, 5 or 7 servers), …
                       (default: $HOLDFAST_STORE, else ~/.local/state/holdfast/locks.db)
  --space NAME         separates applications that share a store (default: 'default')
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
  75  not acquired: busy, the    127  the command was not found
      wait timed out, an
      operator cancelled it,
      or too many wait already
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

const TOP = `holdfast top: the resources of a space, live, the most contended first

Usage:
  holdfast top [--prefix TEXT] [--interval DURATION] [--json] [options]

Keys: q or Ctrl-C quits; j, k, the arrows, space and the page keys scroll; g goes to the top.
If the output is not a terminal, it prints one table and ends.

Options:
  --prefix TEXT        only resources whose name starts with TEXT
  --interval DURATION  how often to look (default 2s, at least 100ms)
  --json               one JSON document on one line for each look, until it is ended
${STORE_HELP}

Examples:
  holdfast top
  holdfast top --prefix order: --interval 500ms
  holdfast top --json | jq --unbuffered .waiting
  HOLDFAST_STORE=redis://locks.internal:6379 holdfast top

Exit codes:
    0  ended by a key, or the table was printed
   64  wrong usage
   69  store unavailable
128+n  ended by signal n
`

const WATCH = `holdfast watch: what happens in the line of one resource, as it happens

Usage:
  holdfast watch NAME [--json] [options]

One line for each event, until it is ended with Ctrl-C:
  holds, waits   was there at the beginning
  waiting        joined the line
  granted        holds from now on
  released       gave the hold back, or the hold was broken
  left           left the line: gave up, was cancelled, or held too briefly to be seen
  expired        was not renewed in time
  resized        the semaphore has another number of permits
It looks at the line up to ten times a second, so a hold of milliseconds can go unseen.

Options:
  --json           one JSON object on one line for each event
${STORE_HELP}

Examples:
  holdfast watch deploy
  holdfast watch order:42 --json >> order-42.log
  HOLDFAST_STORE=redis://locks.internal:6379 holdfast watch deploy

Exit codes:
   64  wrong usage
   69  store unavailable
128+n  ended by signal n; Ctrl-C is 130
`

const BREAK = `holdfast break: revoke the holds of a lock, or cancel a waiter

Usage:
  holdfast break NAME [--fence N | --waiter ID] [options]

The previous holder is told, and its command under 'holdfast run' is ended. The next in line gets
the lock. A waiter that is cancelled fails with CANCELLED and does not ask again.

Options:
  --fence N        only the hold with this fence, as shown by 'holdfast ls', and none that was
                   granted in the meantime
  --waiter ID      no hold, but the waiter with this id, as 'holdfast ls --json' shows it
${STORE_HELP}

Examples:
  holdfast break deploy
  holdfast break deploy --fence 1794772800000123
  holdfast break deploy --waiter 7f3c9a2e-5b1d-4c8e-9f60-2a4b8c1d3e5f:12

Exit codes:
   0  broken or cancelled; the output says whose hold or wait it was
   1  nothing was held, or no such waiter
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

const SERVE = `holdfast serve: a dashboard of the store in the browser, and an API

Usage:
  holdfast serve [--port N] [--host ADDRESS] [--token-file FILE] [options]

Shows who holds and who waits, live. It changes nothing unless you allow it, and listens beyond
this machine only with a token. SIGINT and SIGTERM end it.

Options:
  --port N           the port (default 8470; 0 takes a free one)
  --host ADDRESS     the address to listen on (default 127.0.0.1)
  --token-file FILE  the secret that clients send as 'Authorization: Bearer …', and that the page
                     asks for; at least 16 characters (default: $HOLDFAST_TOKEN)
  --allow-changes    users may break holds, cancel waiters, resize semaphores, and take locks
  --allow-locks      clients may take locks through the API, and change nothing else
  --audit-log FILE   appends lines of JSON about each change made or refused
${STORE_HELP}

Paths:
  /           the dashboard            /metrics   for Prometheus
  /api/…      what the page reads      /healthz   the process is up
  /v1/…       the lock API             /readyz    the store answers
  /openapi.json describes them

Examples:
  holdfast serve
  holdfast serve --store redis://locks.internal:6379 --allow-changes --audit-log audit.jsonl
  openssl rand -hex 24 > token && holdfast serve --host 0.0.0.0 --token-file token
  curl -H "Authorization: Bearer $(cat token)" http://127.0.0.1:8470/api/resources

Exit codes:
   0  ended by SIGINT or SIGTERM
  64  wrong usage, or no token where one is needed
  69  store unavailable, or the port is in use
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
  top: TOP,
  watch: WATCH,
  break: BREAK,
  doctor: DOCTOR,
  schema: SCHEMA,
  serve: SERVE,
}

/** The help of one command, or the general one. */
export function helpFor(command?: string): string {
  return (command !== undefined && Object.hasOwn(OF_COMMAND, command) && OF_COMMAND[command]) || GENERAL
}
