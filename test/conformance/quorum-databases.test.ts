import { runCasesOnQuorum } from '../stores/quorum/conformance.js'

const KINDS = ['postgres', 'mariadb', 'sqlite'] as const

runCasesOnQuorum('a quorum of PostgreSQL, MariaDB and a SQLite file', KINDS, {
  share: { part: 4, of: 21 },
})

runCasesOnQuorum('a quorum of PostgreSQL, which is down, MariaDB and a SQLite file', KINDS, {
  down: [0],
  share: { part: 5, of: 41 },
})

runCasesOnQuorum('a quorum of PostgreSQL, MariaDB, which is down, and a SQLite file', KINDS, {
  down: [1],
  share: { part: 6, of: 41 },
})
