import { describeFaults } from '../faults/quorum.js'

describeFaults(
  'faults of a quorum of PostgreSQL, MariaDB and a SQLite file',
  ['postgres', 'mariadb', 'sqlite'],
  {
    inSuite: ['minority'],
  },
)
