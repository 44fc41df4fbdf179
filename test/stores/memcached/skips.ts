import type { Skips } from '../../conformance/run-cases.js'

const LONG: Skips = {
  '3000 waiters of one process make no call each while they wait, and are served in order':
    'the item of so long a line is large, and written with each change; npm run test:all runs it',
}

export const MEMCACHED_SKIPS: Skips = process.env['HOLDFAST_TEST_ALL'] === '1' ? {} : LONG

export const MEMCACHED_LIMITS = {
  fixedFences: 'a server may evict single lines, so it is no member of a quorum',
} as const
