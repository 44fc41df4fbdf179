import { describeFaults } from '../faults/quorum.js'

describeFaults(
  'faults of a quorum of PostgreSQL, MariaDB and a SQLite file',
  ['postgres', 'mariadb', 'sqlite'],
  {
    // How long a gap lasts depends on how fast a database starts: only in npm run test:faults.
    inSuite: ['all'],
  },
)
