import type { Env } from '../../base/env.js'
import type { ClaimView, InspectQuery, LineView } from '../../contract/store.js'
import { COLLECT_MS } from './line.js'
import type { Member } from './member.js'
import type { Members } from './members.js'

/** The engine's id of a claim, from its id on one member. */
export function engineId(nonce: string): string {
  const end = nonce.lastIndexOf('.')
  return end === -1 ? nonce : nonce.slice(0, end)
}

/** How often a break looks for what it has missed. */
const MOST_LOOKS = 3
/** How often a view looks whether the members have agreed on the fence of a new hold. */
const LOOK_EVERY_MS = 20

/** What the members show of one line. */
type Lines = ReadonlyMap<Member, LineView>

/** What the members show, and which of them have answered. */
interface Look {
  readonly byResource: ReadonlyMap<string, Map<Member, LineView>>
  readonly answered: ReadonlySet<Member>
}

/** Views of the lines: what a majority has. */
export class Inspection {
  readonly #env: Env
  readonly #members: Members

  constructor(env: Env, members: Members) {
    this.#env = env
    this.#members = members
  }

  async lines(query: InspectQuery): Promise<LineView[]> {
    const [env, members] = [this.#env, this.#members]
    let found = await this.#look(query)
    // Those that do not agree within this time give the claim up. A member that was silent for long
    // must not make views take as long.
    const agreeingMs = Math.min(members.roundTripsMs(COLLECT_MS), members.timeoutMs)
    const end = env.now() + agreeingMs
    while (this.#isAgreeing(found, agreeingMs) && env.now() < end) {
      await new Promise<void>((resolve) => env.timer(LOOK_EVERY_MS, resolve, { keepAlive: true }))
      found = await this.#look(query)
    }
    const { byResource, answered } = found
    return [...byResource]
      .map(([resource, lines]) => this.#merge(resource, lines, answered))
      .filter(({ claims }) => claims.length > 0)
  }

  /** By member, the claim that the engine knows by this id, where it is held. */
  async find(resource: string, id: string): Promise<Map<Member, { id: string; fence: number }>> {
    const lines = await this.#linesOf(resource)
    const found = new Map<Member, { id: string; fence: number }>()
    for (const [member, { claims }] of lines)
      for (const claim of claims)
        if (claim.fence !== null && engineId(claim.id) === id)
          found.set(member, { id: claim.id, fence: claim.fence })
    return found
  }

  /** Revokes these holds on all members that have them. */
  async evict(resource: string, isMeant: (claim: ClaimView) => boolean): Promise<ClaimView[]> {
    let lines = await this.#linesOf(resource)
    const { claims } = this.#merge(resource, lines, new Set())
    const isGrant = (claim: ClaimView): boolean => claim.fence !== null && isMeant(claim)
    const holds = claims.filter(isGrant)
    // Without a hold: what a minority has granted, as to a client that died before it had more.
    const grants = [...lines.values()].flatMap((line) => line.claims).filter(isGrant)
    const ids = new Set((holds.length > 0 ? holds : grants).map(({ id }) => engineId(id)))
    // The fence of a hold that is passed on changes: what was missed is looked for again.
    for (let look = 0; look < MOST_LOOKS; look++) {
      const found = await this.#members.gather((member) => this.#evictOn(member, lines.get(member), ids))
      if ([...found.values()].every((count) => count === 0)) break
      lines = await this.#linesOf(resource)
    }
    return holds
  }

  /**
   * Takes a claim out of the line in which it waits, that of the usher. One that the usher has
   * granted is about to be held, and is left alone. What other members granted is on its way back.
   */
  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    const lines = await this.#linesOf(resource)
    const usher = this.#members.usherOf(resource)
    const placeOn = (member: Member): ClaimView | undefined =>
      lines.get(member)?.claims.find((claim) => engineId(claim.id) === id)
    // Clients may disagree about the usher: then it waits on another member.
    const members = usher && placeOn(usher) ? [usher] : [...lines.keys()]
    const cancelled = await Promise.all(
      members.map(async (member) => {
        const place = placeOn(member)
        if (!place || place.fence !== null) return []
        return member.call((connection) => connection.cancel(resource, place.id))
      }),
    )
    const [first] = cancelled.flat()
    return first ? [{ ...first, id }] : []
  }

  async #linesOf(resource: string): Promise<Lines> {
    return (await this.#look({ prefix: '', resource })).byResource.get(resource) ?? new Map()
  }

  /** Gives how many grants of these claims the member had. */
  async #evictOn(member: Member, line: LineView | undefined, ids: ReadonlySet<string>): Promise<number> {
    const grants = (line?.claims ?? []).filter(({ fence, id }) => fence !== null && ids.has(engineId(id)))
    for (const { fence } of grants)
      await member.call((connection) => connection.evict(line?.resource ?? '', fence))
    return grants.length
  }

  async spaces(): Promise<string[]> {
    const lists = await this.#members.gather((member) =>
      member.call(async (connection) => (await connection.spaces?.()) ?? []),
    )
    return [...new Set([...lists.values()].flat())]
  }

  async #look(query: InspectQuery): Promise<Look> {
    const lookAt = (member: Member): Promise<LineView[]> =>
      member.call(async (connection) => {
        const lines: LineView[] = []
        for await (const line of connection.inspect(query)) lines.push(line)
        return lines
      })
    // All of them: where two show different fences, only the others tell which one is the hold's.
    const views = await this.#members.gather(lookAt, this.#members.all.length)
    const byResource = new Map<string, Map<Member, LineView>>()
    for (const [member, lines] of views)
      for (const line of lines) {
        const known = byResource.get(line.resource) ?? new Map<Member, LineView>()
        byResource.set(line.resource, known.set(member, line))
      }
    return { byResource, answered: new Set(views.keys()) }
  }

  /**
   * Whether a majority has granted a claim just now, and not all have the same fence: they may be
   * about to agree on one, also where most of them have it.
   */
  #isAgreeing({ byResource, answered }: Look, withinMs: number): boolean {
    const isUnsure = (views: readonly ClaimView[]): boolean => {
      const grants = views.filter(({ fence }) => fence !== null)
      if (grants.length < this.#members.majority) return false
      const isNew = grants.some(({ ageMs }) => ageMs < withinMs)
      return isNew && (grants.length < answered.size || new Set(fencesOf(grants)).size > 1)
    }
    return [...byResource.values()].some((lines) => [...byClaim(lines.values()).values()].some(isUnsure))
  }

  /** Holds are what a majority has granted; the others wait, in the order of the usher's line. */
  #merge(resource: string, lines: Lines, answered: ReadonlySet<Member>): LineView {
    const usher = this.#members.usherOf(resource)
    const first = usher && lines.get(usher)
    const claims = byClaim(new Set([...(first ? [first] : []), ...lines.values()]))
    const isHold = ({ fence }: ClaimView): boolean => fence !== null
    // A grant that only others have is on its way out: its release has reached the usher already.
    // A place in another line stays: the claim has not reached the usher.
    const atUsher = new Set(first?.claims.map(({ id }) => engineId(id)))
    const isUsherKnown = usher !== null && answered.has(usher)
    const isThere = (id: string, views: readonly ClaimView[]): boolean =>
      !isUsherKnown || atUsher.has(id) || !views.every(isHold)
    const merged = [...claims]
      .map(([id, views]) => ({ claim: this.#mergeClaim(id, views), views }))
      .filter(({ claim, views }) => isHold(claim) || isThere(claim.id, views))
      .map(({ claim }) => claim)
    return {
      resource,
      capacity: [...lines.values()][0]?.capacity ?? 0,
      claims: [...merged.filter(isHold), ...merged.filter((claim) => !isHold(claim))],
    }
  }

  #mergeClaim(id: string, views: readonly ClaimView[]): ClaimView {
    const { majority } = this.#members
    const grants = views.filter(({ fence }) => fence !== null)
    const isHeld = grants.length >= majority
    const counted = isHeld ? grants : views
    const first = counted[0] as ClaimView
    return {
      id,
      permits: Math.min(...counted.map(({ permits }) => permits)),
      fence: isHeld ? commonFence(fencesOf(grants)) : null,
      info: first.info,
      ageMs: ranked(
        counted.map(({ ageMs }) => ageMs),
        isHeld ? majority : 1,
      ),
      expiresInMs: ranked(
        counted.map(({ expiresInMs }) => expiresInMs),
        isHeld ? majority : 1,
      ),
    }
  }
}

/** The number at that place, the largest first. */
function ranked(numbers: readonly number[], place: number): number {
  return [...numbers].sort((a, b) => b - a)[place - 1] ?? 0
}

/** What the members show of each claim, by the engine's id, in the order of the lines. */
function byClaim(lines: Iterable<LineView>): Map<string, ClaimView[]> {
  const views = new Map<string, ClaimView[]>()
  for (const { claims } of lines)
    for (const claim of claims) {
      const known = views.get(engineId(claim.id))
      if (known) known.push(claim)
      else views.set(engineId(claim.id), [claim])
    }
  return views
}

function fencesOf(views: readonly ClaimView[]): number[] {
  return views.map(({ fence }) => fence).filter((fence) => fence !== null)
}

/** The fence that most members have; of several the lowest, as late members have higher ones. */
function commonFence(fences: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const fence of fences) counts.set(fence, (counts.get(fence) ?? 0) + 1)
  const [best] = [...counts].sort(([fenceA, a], [fenceB, b]) => b - a || fenceA - fenceB)
  return best?.[0] ?? 0
}
