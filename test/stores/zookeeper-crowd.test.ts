import { expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { Beat, ClaimReply, ClaimRequest, Connection } from '../../src/contract/store.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'

const WAITERS = 900
const SESSIONS = 30
const MINUTE_MS = 60_000
/** Others that were woken would have been told by then. */
const SETTLED_MS = 500

/** How often the server has told a session that a node is gone or was written to, and that a line has changed. */
async function notifications(server: ZooKeeperServer): Promise<{ nodes: number; children: number }> {
  const text = await server.ask('mntr')
  const sum = (what: string): number => Number(new RegExp(`^zk_sum_${what}\\s+(\\d+)`, 'm').exec(text)?.[1])
  const nodes = sum('node_deleted_watch_count') + sum('node_changed_watch_count')
  return { nodes, children: sum('node_children_watch_count') }
}

function claimOf(id: string): ClaimRequest {
  const times = { leaseMs: 10 * MINUTE_MS, presenceMs: 10 * MINUTE_MS, maxHoldMs: null }
  const rest = { mode: 'queue' as const, floor: 0, block: 1, info: '' }
  return { resource: 'door', id, permits: EXCLUSIVE, capacity: EXCLUSIVE, ...times, ...rest }
}

describeOn('zookeeper', '900 waiters on one ZooKeeper lock', () => {
  it('a release wakes exactly one of them', { timeout: 3 * MINUTE_MS }, async () => {
    const server = await startZooKeeper()
    const granted: { id: string; connection: Connection }[] = []
    const connections = Array.from({ length: SESSIONS }, (_, index): Connection => {
      const store = zookeeper(server.address, { sessionTimeout: MINUTE_MS - index, tick: 200 })
      const connection = store.connect({
        id: `client ${index}`,
        space: 's',
        push: (news) => {
          if (news.type === 'granted') granted.push({ id: news.id, connection })
        },
      })
      return connection
    })
    // Each wave by the other half of the sessions: so nobody waits for a claim of its own session, of which it would know by itself.
    const halves = [connections.slice(0, SESSIONS / 2), connections.slice(SESSIONS / 2)]
    const [first] = connections
    if (!first) throw new Error('no sessions')
    const beats = new Map(connections.map((connection): [Connection, Beat[]] => [connection, []]))
    const join = async (connection: Connection, id: string): Promise<ClaimReply> => {
      const { resource, leaseMs, presenceMs } = claimOf(id)
      beats.get(connection)?.push({ resource, id, leaseMs, presenceMs })
      return connection.claim(claimOf(id))
    }
    await join(first, 'holder')
    for (let wave = 1; wave <= WAITERS / (SESSIONS / 2); wave++) {
      const half = halves[wave % 2] ?? []
      const joining = half.map((connection, index) => join(connection, `${wave}:${index}`))
      for (const reply of await Promise.all(joining)) expect(reply.status).toBe('waiting')
    }
    // They watch their own nodes when these have been there for a while, at the latest from their next pulse on.
    await Promise.all(connections.map((connection) => connection.pulse(beats.get(connection) ?? [])))
    let holder = { id: 'holder', connection: first }
    for (let release = 1; release <= 5; release++) {
      const before = await notifications(server)
      expect(await holder.connection.release('door', holder.id)).toBe(true)
      await eventually('the next one', () => granted.length === release)
      await pass(SETTLED_MS)
      const after = await notifications(server)
      expect(granted).toHaveLength(release)
      // The one whose node it was, and the one that waited for it.
      expect(after.nodes - before.nodes).toBe(2)
      expect(after.children).toBe(before.children)
      holder = granted.at(-1) ?? holder
    }
    await Promise.all(connections.map((connection) => connection.close()))
    await server.stop()
  })
})
