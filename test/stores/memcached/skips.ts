import type { Skips } from '../../conformance/run-cases.js'

export const MEMCACHED_SKIPS: Skips = {
  '10000 waiters of one process make no call each while they wait, and are served in order':
    'a line is one item of 1 MiB, with room for some 6,500 claims',
}

export const MEMCACHED_LIMITS = {
  fixedFences: 'a server may evict single lines, so it is no member of a quorum',
} as const
