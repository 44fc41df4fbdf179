import { expect, it } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest, ClaimView, Connection, Push, Store } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

const WORLDS = Number(process.env['HOLDFAST_WORLDS'] ?? 20)
const TURNS = 25
const NAMES = ['door', 'gate']
const CLIENTS = ['one', 'two']

type Step =
  | { readonly type: 'claim'; readonly claim: ClaimRequest }
  | { readonly type: 'release'; readonly resource: string; readonly id: string }

// Two ways to the same line, written apart: in Lua for many calls at once, with short ways, and in TypeScript.
describeOn('redis', 'a Redis line beside that of the memory store', () => {
  it('answers and grants alike, and its links hold', { timeout: 300_000 }, async () => {
    const server = await startRedis()
    let named = 0
    for (let round = 0; round < WORLDS; round++) named += await compare(server, `beside ${round}`)
    // A run counts only if enough has happened in it.
    expect(named).toBeGreaterThan(WORLDS * 5)
    await server.stop()
  })
})

/** One store with its clients, and how many heirs were named to them. */
class Side {
  readonly clients: readonly Connection[]
  named = 0

  constructor(makeStore: () => Store, space: string) {
    const push = (news: Push): void => {
      if (news.type === 'granted') this.named += news.heirs?.length ?? 0
    }
    this.clients = CLIENTS.map((id) => makeStore().connect({ id: `${id} ${space}`, space, push }))
  }

  do(client: number, steps: readonly Step[]): Promise<unknown[]> {
    const by = this.clients[client] as Connection
    return Promise.all(
      steps.map(async (step) => {
        if (step.type === 'release') return by.release(step.resource, step.id)
        return (await by.claim(step.claim)).status
      }),
    )
  }

  async line(resource: string): Promise<readonly ClaimView[]> {
    for await (const line of this.clients[0]?.inspect({ prefix: '', resource }) ?? []) return line.claims
    return []
  }
}

/** The same turns on both; how many heirs were named. */
async function compare(server: RedisServer, space: string): Promise<number> {
  let wallMs = Date.now()
  const clock: Env = { ...systemEnv, wallMs: () => wallMs, now: () => wallMs }
  const shared = memory({ env: clock })
  const [there, here] = [
    new Side(() => redis(server.url, { env: clock }), space),
    new Side(() => shared, space),
  ]
  for (const client of there.clients) await client.read('listens from here on', true)
  const story: string[] = []
  for (let turn = 0, ids = 0; turn < TURNS; turn++) {
    wallMs += number(4) === 0 ? number(500) : 1
    const lines = new Map<string, readonly ClaimView[]>()
    for (const name of NAMES) lines.set(name, await here.line(name))
    const steps = Array.from({ length: 1 + number(16) }, () => someStep(lines, () => `c:${++ids}`))
    const client = number(CLIENTS.length)
    story.push(JSON.stringify({ client, wallMs, steps }))
    expect(await there.do(client, steps), story.join('\n')).toEqual(await here.do(client, steps))
    for (const name of NAMES) {
      expect(plain(await there.line(name)), story.join('\n')).toEqual(plain(await here.line(name)))
      await checkLinks(server, `holdfast:${space}:{${name}}`, story)
    }
  }
  for (const { clients } of [there, here]) for (const client of clients) await client.close()
  return there.named
}

/** Mostly from the front on, sometimes by anybody; mostly for all of it. */
function someStep(lines: Map<string, readonly ClaimView[]>, newId: () => string): Step {
  const resource = NAMES[number(10) < 7 ? 0 : 1] as string
  const line = lines.get(resource) ?? []
  const [gone, left] = number(8) === 0 ? [line.at(number(line.length)), line] : [line[0], line.slice(1)]
  if (gone && number(10) < 6) {
    lines.set(resource, left)
    return { type: 'release', resource, id: gone.id }
  }
  const leaseMs = number(8) === 0 ? 300 : 5000
  const claim = claimOf(resource, newId(), {
    permits: number(12) === 0 ? 1 : EXCLUSIVE,
    capacity: EXCLUSIVE,
    block: number(12) === 0 ? 3 : 1,
    maxHoldMs: number(20) === 0 ? 800 : null,
    leaseMs,
    presenceMs: leaseMs,
  })
  return { type: 'claim', claim }
}

/** What both must show alike. Fences are the stores' own. */
function plain(claims: readonly ClaimView[]): unknown {
  return claims.map(({ id, permits, fence, expiresInMs }) => [
    id,
    permits,
    fence !== null,
    Math.round(expiresInMs),
  ])
}

/** From the first claim on, each is the next of the one before it, and nobody else is in the key. */
async function checkLinks(server: RedisServer, key: string, story: readonly string[]): Promise<void> {
  const cells = (await server.cli('hgetall', key)).split('\n')
  const fields = new Map<string, string>()
  for (let at = 0; at + 1 < cells.length; at += 2) fields.set(cells[at] ?? '', cells[at + 1] ?? '')
  const head = fields.get('#') ?? ''
  fields.delete('#')
  if (!head.startsWith('line ')) return
  const [first = '-', , tail] = head.split(' ').slice(8)
  let [before, linked] = ['-', 0]
  for (let id = first; id !== '-'; linked++) {
    const [next = '-', prev] = fields.get(id)?.split(' ') ?? []
    expect(prev, `${id} in ${key}\n${head}\n${story.join('\n')}`).toBe(before)
    ;[before, id] = [id, next]
  }
  expect([before, linked], `${key}\n${head}\n${story.join('\n')}`).toEqual([tail, fields.size])
}

function number(below: number): number {
  return Math.floor(Math.random() * below)
}
