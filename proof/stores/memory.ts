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
  obstacle: () => null,
  async start() {
    const clock = new WallClock()
    const canMove = clock.obstacle === null
    return {
      nemeses: [...clientNemeses(LEASE_MS), ...(canMove ? [clientClockJump(clock, LEASE_MS)] : [])],
      wayOf: async () => ({ url: 'memory:proof', ...(canMove && { env: clock.env }) }),
      stop: async () => clock.dispose(),
    }
  },
}
