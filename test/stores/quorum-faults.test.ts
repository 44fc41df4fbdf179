import { describeFaults } from '../faults/quorum.js'

describeFaults('faults of a quorum of three Redis', ['redis', 'redis', 'redis'], {
  inSuite: ['minority', 'majority', 'all', 'clock'],
})
