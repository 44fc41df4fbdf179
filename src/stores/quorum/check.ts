import { formatMs } from '../../base/duration.js'
import type { Env } from '../../base/env.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { Finding } from '../../contract/store.js'
import { LONGEST_LEAD_MS } from './fence-hints.js'
import type { Member } from './member.js'
import type { Members } from './members.js'

const CHECK_LEASE_MS = 1000
/** Clocks that are further apart cost each grant a second round trip. */
const FAR_APART_MS = LONGEST_LEAD_MS

/** Inspects the set, and each member. */
export async function checkMembers(env: Env, members: Members): Promise<Finding[]> {
  const findings = [strength(members)]
  if (members.hasMajority) findings.push(await durability(members), await clocks(env, members))
  for (const member of members.up) findings.push(...(await ofMember(member)))
  return findings
}

function strength(members: Members): Finding {
  const { all, up, majority } = members
  const spare = up.length - majority
  const survives = `${up.length} of ${all.length} members vote, ${majority} are needed`
  if (up.length === all.length)
    return { level: 'fine', about: 'members', text: `${survives}: ${spare} may fail.` }
  const text = `${survives}${spare >= 0 ? `: ${spare} more may fail` : ''}. ${members.describe()}.`
  return { level: spare < 0 ? 'fault' : 'risk', about: 'members', text }
}

/** Which members may lose what they have granted when they restart. */
async function durability(members: Members): Promise<Finding> {
  const volatile: string[] = []
  for (const member of members.up) {
    const run = await member
      .call(async (connection) => (await connection.origin?.run()) ?? null)
      .catch(() => '')
    if (run !== null) volatile.push(member.label)
  }
  if (volatile.length === 0)
    return {
      level: 'fine',
      about: 'durability',
      text: 'All members keep their data through a restart, if the settings of each allow it: see below.',
    }
  const text = `After a restart, ${volatile.join(', ')} may have lost data and will not vote for the longest lease; for Redis, use appendonly yes and appendfsync always to avoid that wait.`
  return { level: 'fine', about: 'durability', text }
}

/** How far the members' clocks are apart: the fence of an unused name is the clock. */
async function clocks(env: Env, members: Members): Promise<Finding> {
  const resource = `holdfast check ${env.id()}`
  const offsets: number[] = []
  for (const member of members.up) {
    const offsetMs = await clockOffsetMs(env, member, resource).catch(() => null)
    if (offsetMs !== null) offsets.push(offsetMs)
  }
  const apartMs = offsets.length === 0 ? 0 : Math.max(...offsets) - Math.min(...offsets)
  const apart = `The clocks of the members are ${formatMs(Math.round(apartMs))} apart`
  if (apartMs < FAR_APART_MS) return { level: 'fine', about: 'clocks', text: `${apart}.` }
  const text = `${apart}, so each grant takes a second round trip; set them by NTP.`
  return { level: 'risk', about: 'clocks', text }
}

async function clockOffsetMs(env: Env, member: Member, resource: string): Promise<number | null> {
  const id = env.id()
  const sentAt = env.wallMs()
  const reply = await member.call((connection) =>
    connection.claim({
      resource,
      id,
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      leaseMs: CHECK_LEASE_MS,
      presenceMs: CHECK_LEASE_MS,
      maxHoldMs: null,
      mode: 'try',
      floor: 0,
      block: 1,
      info: '{}',
    }),
  )
  if (reply.status !== 'granted') return null
  const middle = (sentAt + env.wallMs()) / 2
  await member.call((connection) => connection.release(resource, id))
  return reply.fence / 1000 - middle
}

async function ofMember(member: Member): Promise<Finding[]> {
  try {
    const findings = await member.call(async (connection) => (await connection.check?.()) ?? [])
    return findings.map(({ level, about, text }) => ({ level, about: `${member.label}: ${about}`, text }))
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return [{ level: 'risk', about: member.label, text: `Its check failed: ${text}` }]
  }
}
