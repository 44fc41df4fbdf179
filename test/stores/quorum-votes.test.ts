import { expect, it } from 'vitest'
import { nothing } from '../../src/base/nothing.js'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { QuorumClaim } from '../../src/stores/quorum/claim.js'
import { Contention } from '../../src/stores/quorum/contention.js'
import { FenceHints } from '../../src/stores/quorum/fence-hints.js'
import type { Member } from '../../src/stores/quorum/member.js'
import { Members } from '../../src/stores/quorum/members.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LEASE_MS = 2_000
const PRESENCE_MS = 30_000

const request: ClaimRequest = {
  resource: 'r',
  id: 'a',
  mode: 'queue',
  permits: EXCLUSIVE,
  capacity: EXCLUSIVE,
  leaseMs: LEASE_MS,
  presenceMs: PRESENCE_MS,
  maxHoldMs: null,
  floor: 0,
  block: 1,
  info: '',
}

it('counts a pushed grant for as long as its member was asked for, whatever others are asked for', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const env = world.env({ name: 'client' })
  const stores = Array.from({ length: 5 }, () => new InterceptedStore(memory({ env })))
  const members = new Members(
    { env, stores, timeoutMs: 1_000, waitMs: 60_000 },
    {
      clientId: 'client',
      space: 'default',
      onPush: nothing,
      onFailure: nothing,
      onUp: nothing,
      awaited: () => new Set(),
    },
  )
  await world.until(Promise.resolve(members.ready()))
  const [silent, cutOff] = members.all.filter((member) => member !== members.usherOf('r')) as [Member, Member]
  stores[silent.index]?.hang('claim')
  stores[cutOff.index]?.cut('claim')

  let nonces = 0
  const contention = new Contention(env)
  const claim = new QuorumClaim(request, {
    env,
    members,
    hints: new FenceHints(env),
    contention,
    newNonce: (id) => `${id}.${++nonces}`,
    giveBack: nothing,
    onRefused: nothing,
    onGranted: nothing,
    onLost: nothing,
  })
  // The usher is asked alone. The others are asked for what is left of its grant.
  contention.note('r')
  const askedAt = env.now()
  claim.start()
  await world.until(claim.answer.promise)
  await world.run(world.timeMs + 1)
  expect(claim.phase).toBe('held')
  const presenceMs = (member: Member): number[] =>
    (stores[member.index]?.calls ?? []).flatMap(({ method, about }) =>
      method === 'claim' ? [(about as ClaimRequest).presenceMs] : [],
    )
  expect(presenceMs(silent)[0]).toBeLessThan(LEASE_MS + 1)

  stores[cutOff.index]?.heal()
  claim.voting.join(claim.votes.of(cutOff))
  expect(presenceMs(cutOff).at(-1)).toBe(PRESENCE_MS)
  const vote = claim.votes.of(silent)
  expect(claim.voting.onGranted(silent, vote.nonce, claim.fence)).toBe(true)
  expect(vote.state).toBe('granted')
  expect(vote.until - askedAt).toBeLessThanOrEqual(LEASE_MS + 1)
})
