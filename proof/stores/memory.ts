import { WallClock } from '../../test/servers/wall-clock.js'
import { clientClockJump, clientNemeses } from '../nemeses/clients.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 1000

export const memory: ProvedStore = {
  name: 'memory',
  title: 'Memory',
  page: 'memory',
  leaseMs: LEASE_MS,
  workers: 1,
  clients: 6,
  setup: 'one process with six clients',
  missing: [
    { fault: 'kills', reason: 'everything is gone with the process' },
    { fault: 'clocks that run fast or slow', reason: 'there is only one clock' },
  ],
  obstacle: () => null,
  async start() {
    const clock = new WallClock()
    const canMove = clock.obstacle === null
    return {
      nemeses: [
        // There is one process only.
        ...clientNemeses(LEASE_MS).map((nemesis) => ({ ...nemesis, stopsAll: true })),
        ...(canMove ? [clientClockJump(clock, LEASE_MS)] : []),
      ],
      wayOf: async () => ({ url: 'memory:proof', ...(canMove && { env: clock.env }) }),
      stop: async () => clock.dispose(),
    }
  },
}
