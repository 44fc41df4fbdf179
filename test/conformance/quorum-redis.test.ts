import { runCasesOnQuorum } from '../stores/quorum/conformance.js'

const [three, five] = [3, 5].map((count) => Array.from({ length: count }, () => 'redis' as const))

runCasesOnQuorum('a quorum of three Redis', three ?? [], {
  share: { part: 0, of: 11 },
  strict: { part: 3, of: 21 },
})

runCasesOnQuorum('a quorum of three Redis, one of them down', three ?? [], {
  down: [1],
  share: { part: 1, of: 17 },
})

runCasesOnQuorum('a quorum of five Redis', five ?? [], { share: { part: 2, of: 31 } })

runCasesOnQuorum('a quorum of five Redis, two of them down', five ?? [], {
  down: [0, 3],
  share: { part: 3, of: 31 },
})
