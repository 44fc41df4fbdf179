import { describeFaults } from '../faults/quorum.js'

describeFaults('faults of a quorum of five Redis', ['redis', 'redis', 'redis', 'redis', 'redis'], {
  isSkewed: true,
  inSuite: ['all'],
})
