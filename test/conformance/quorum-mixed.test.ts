import { runCasesOnQuorum } from '../stores/quorum/conformance.js'

const KINDS = ['redis', 'postgres', 'mariadb'] as const

runCasesOnQuorum('a quorum of Redis, PostgreSQL and MariaDB', KINDS, {
  share: { part: 6, of: 21 },
})

runCasesOnQuorum('a quorum of Redis, which is down, PostgreSQL and MariaDB', KINDS, {
  down: [0],
  share: { part: 7, of: 41 },
})
