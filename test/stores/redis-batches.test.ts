import { expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest, Connection, Store } from '../../src/contract/store.js'
import { redis } from '../../src/stores/redis/index.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { borrowRedis } from '../servers/redis.js'

const CLIENTS = ['one', 'two', 'three']

/** What a client does with the claim of that number. */
interface Step {
  readonly type: 'claim' | 'release'
  readonly claim: ClaimRequest
}

describeOn(
  'redis',
  'calls that go to Redis together',
  () => {
    it('do what they would do one after the other', { timeout: 120_000 }, async () => {
      const server = await borrowRedis()
      const store = redis(server.url)
      for (let round = 0; round < 40; round++) {
        const batches = Array.from({ length: 30 }, someBatch)
        const [together, apart] = [
          await lineUp(store, `together ${round}`),
          await lineUp(store, `apart ${round}`),
        ]
        for (const { client, steps } of batches) {
          const [at, by] = [together[client], apart[client]]
          const replies = await Promise.all(steps.map((step) => call(at, step)))
          const expected = []
          for (const step of steps) expected.push(await call(by, step))
          expect(replies, JSON.stringify(steps)).toEqual(expected)
          expect(await linesOf(at)).toEqual(await linesOf(by))
        }
        await Promise.all([...together, ...apart].map((connection) => connection.close()))
      }
      await server.stop()
    })
  },
  { own: false },
)

/** Clients that have waited once, and so are subscribed: before that, a claim is sent a second time. */
async function lineUp(store: Store, space: string): Promise<Connection[]> {
  const connections = CLIENTS.map((name) => store.connect({ id: `${name} ${space}`, space, push: () => {} }))
  const claims = CLIENTS.map((name) => claimOf('first', name))
  for (const [index, claim] of [...claims, claimOf('first', 'again')].entries())
    await connections[index % CLIENTS.length]?.claim(claim)
  await connections[0]?.evict('first', null)
  for (const { id } of [...claims, { id: 'again' }]) await connections[0]?.release('first', id)
  return connections
}

/** Up to five calls of one client on two lines, often about the same claims. */
function someBatch(): { client: number; steps: Step[] } {
  const steps = Array.from({ length: 1 + number(5) }, (): Step => {
    const resource = number(4) === 0 ? 'other' : 'door'
    const permits = number(4) === 0 ? 1 : EXCLUSIVE
    const claim = claimOf(resource, String(number(8)), {
      permits,
      capacity: EXCLUSIVE,
      leaseMs: 600_000,
      presenceMs: 600_000,
      mode: number(5) > 0 ? 'queue' : 'try',
      block: number(3) === 0 ? 8 : 1,
    })
    return { type: number(2) === 0 ? 'claim' : 'release', claim }
  })
  return { client: number(CLIENTS.length), steps }
}

/** The answer, without what differs by the clock. */
async function call(connection: Connection | undefined, { type, claim }: Step): Promise<unknown> {
  if (type === 'release') return connection?.release(claim.resource, claim.id)
  const reply = await connection?.claim(claim)
  if (reply?.status === 'waiting') return { status: reply.status, isNext: reply.isNext }
  return reply?.status === 'granted' ? { status: reply.status, isWanted: reply.isWanted } : reply
}

async function linesOf(connection: Connection | undefined): Promise<unknown> {
  const lines = []
  for await (const { resource, claims } of connection?.inspect({ prefix: '' }) ?? [])
    lines.push([resource, ...claims.map(({ id, permits, fence }) => [id, permits, fence !== null])])
  return lines.sort()
}

function number(below: number): number {
  return Math.floor(Math.random() * below)
}
