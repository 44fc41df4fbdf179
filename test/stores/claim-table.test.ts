import { expect, it } from 'vitest'
import type { ClaimRequest } from '../../src/contract/store.js'
import { CallQueue } from '../../src/stores/shared/call-queue.js'
import { ClaimExpiry } from '../../src/stores/shared/claim-expiry.js'
import { ClaimTable, type SessionClaim } from '../../src/stores/shared/claim-table.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const CLAIMS = 100

/** Counts the attempts to leave the line, and lets each of them fail as often as it is told to. */
class LeavingClaim implements SessionClaim {
  readonly calls = new CallQueue()
  readonly expiry: ClaimExpiry
  readonly key: string
  attempts = 0
  failures = 0
  isLost = false

  constructor(request: ClaimRequest, key: string, now: number) {
    this.expiry = new ClaimExpiry(request, now)
    this.key = key
  }

  isAlive(): boolean {
    return true
  }

  abandon(): void {}

  async leave(): Promise<boolean> {
    this.attempts++
    if (this.failures-- > 0) throw new Error('no answer')
    return true
  }

  lose(): void {
    this.isLost = true
  }
}

function tableIn(world: VirtualWorld): { claims: LeavingClaim[]; table: ClaimTable<LeavingClaim> } {
  const env = world.env({ name: 'client' })
  const make = (request: ClaimRequest, key: string, now: number): LeavingClaim =>
    new LeavingClaim(request, key, now)
  const table = new ClaimTable<LeavingClaim>(env, make, () => {}, 100)
  const claims = Array.from({ length: CLAIMS }, (_, number) => {
    const request = { resource: 'door', id: String(number), presenceMs: 1000 } as ClaimRequest
    const claim = table.open(request, env.now())
    table.schedule(claim)
    return claim
  })
  return { claims, table }
}

it('removes each of many claims that expire together once', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { claims, table } = tableIn(world)
  await world.run(2000)
  expect(claims.map(({ attempts }) => attempts)).toEqual(claims.map(() => 1))
  expect(table.hasLeftovers).toBe(false)
})

it('tries again until a claim is removed', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { claims, table } = tableIn(world)
  for (const claim of claims) claim.failures = 2
  await world.run(2000)
  expect(claims.map(({ attempts }) => attempts)).toEqual(claims.map(() => 3))
  expect(table.hasLeftovers).toBe(false)
})

it('loses with the session what could not be removed before', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { claims, table } = tableIn(world)
  for (const claim of claims) claim.failures = Infinity
  await world.run(2000)
  expect(claims.every(({ attempts }) => attempts > 0)).toBe(true)
  table.loseAll()
  expect(claims.every(({ isLost }) => isLost)).toBe(true)
})

it('tries again for claims that could not leave when their client was closed', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { claims, table } = tableIn(world)
  for (const claim of claims) claim.failures = 2
  table.cancelTimer()
  await table.leaveAll()
  table.clear()
  expect(table.hasLeftovers).toBe(true)
  await world.run(2000)
  expect(claims.map(({ attempts }) => attempts)).toEqual(claims.map(() => 3))
  expect(table.hasLeftovers).toBe(false)
})

it('tries nothing again once the session ends, also for what fails later', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { claims, table } = tableIn(world)
  for (const claim of claims) claim.failures = Infinity
  table.cancelTimer()
  table.stopCleaning()
  for (const claim of claims) table.abandon(claim)
  await world.run(2000)
  expect(claims.map(({ attempts }) => attempts)).toEqual(claims.map(() => 1))
})
