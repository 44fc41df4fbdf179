import { EXCLUSIVE, FLOOR_SKEW_MS } from '../../contract/constants.js'
import type { ClaimRequest } from '../../contract/store.js'
import * as model from '../model.js'
import type { HistoryClient } from './clients.js'
import { type Floor, type NamedFence, RESOURCES, type Target } from './commands.js'
import type { Ledger } from './ledger.js'

/** What is known of a history so far. */
export interface HistoryScene {
  readonly model: model.Model
  readonly ledger: Ledger
  /** Every claim that was ever made: who made it, and how. */
  readonly asked: { readonly client: number; readonly request: TwinRequest }[]
  readonly now: number
  readonly wallMs: number
  /** Whether the store takes the fences that a beat names. */
  readonly takesFences: boolean
  client(index: number): HistoryClient
}

/** A request in the store's numbers and in the model's: they differ in the fence to adopt. */
export interface TwinRequest {
  readonly real: ClaimRequest
  readonly modelled: ClaimRequest
}

/** A fence in the store's numbers and in the model's. */
export interface TwinNumber {
  readonly real: number
  readonly modelled: number
}

/** More than a store's counter moves by itself within a history. */
const FAR_AHEAD = 100_000_000

/** No store ever gave it. */
export const NEVER: TwinNumber = { real: 1, modelled: -1 }

export function floorOf(floor: Floor, resource: string, { ledger, wallMs }: HistoryScene): number {
  if (floor === 'none') return 0
  if (floor === 'absurd') return Math.floor(wallMs * 1000) + 3_600_000_000
  return ledger.highest(resource) + (floor === 'ahead' ? 10_000_000 : 0)
}

/** The fence that the beat at this place of a pulse names for its claim. */
export function namedFence(
  { first: name, index }: { readonly first: NamedFence; readonly index: number },
  { resource, id }: { readonly resource: string; readonly id: string },
  place: number,
  scene: HistoryScene,
): TwinNumber {
  const { ledger, model, wallMs } = scene
  const claim = model.claims.find(({ request }) => request.resource === resource && request.id === id)
  const own = claim && claim.fence !== null ? twin(claim.fence, scene) : NEVER
  const seen = seenFences(scene, resource)
  if (name === 'own') return own
  if (name === 'never') return NEVER
  if (name === 'seen') return seen[index % Math.max(1, seen.length)] ?? NEVER
  if (name === 'next' && own !== NEVER && claim?.permits === EXCLUSIVE)
    return { real: own.real + 1, modelled: own.modelled + 0.5 }
  const newest = Math.max(ledger.highestOfAll, Math.ceil((wallMs + FLOOR_SKEW_MS) * 1000))
  return { real: newest + FAR_AHEAD * (place + 1), modelled: Infinity }
}

export function versionOf(
  expect: 'right' | 'none' | 'past',
  key: string,
  scene: HistoryScene,
): TwinNumber | null {
  if (expect === 'none') return null
  const current = model.read(scene.model, scene.now, '', key, false).reply
  if (expect === 'right') return current && twin(current.version, scene)
  const versions = numbersGiven(scene, (given) => given.kind === 'version' && given.name === key)
  return versions.find((each) => each.modelled !== current?.version) ?? NEVER
}

/** The claim that a command is about, with its fence if it holds. */
export function findTarget({ among, index }: Target, clientId: string, scene: HistoryScene) {
  const { asked } = scene
  const nobody = { resource: RESOURCES[index % RESOURCES.length] ?? 'door', id: 'nobody', number: NEVER }
  if (among === 'nowhere') return nobody
  if (among === 'past') {
    const past = asked[index % Math.max(1, asked.length)]
    if (!past) return nobody
    const { resource, id } = past.request.real
    const fences = seenFences(scene, resource)
    return { resource, id, number: fences[index % Math.max(1, fences.length)] ?? NEVER }
  }
  const candidates = scene.model.claims.filter((each) => among === 'line' || each.client === clientId)
  const found = candidates[index % Math.max(1, candidates.length)]
  if (!found) return nobody
  const { resource, id } = found.request
  return { resource, id, number: found.fence === null ? NEVER : twin(found.fence, scene) }
}

/** Of one resource: a store that counts per resource may give the same number for another one. */
export function seenFences(scene: HistoryScene, resource: string): TwinNumber[] {
  return numbersGiven(scene, ({ kind, name }) => (kind === 'hold' || kind === 'named') && name === resource)
}

function numbersGiven(scene: HistoryScene, isMeant: (given: model.Given) => boolean): TwinNumber[] {
  return scene.model.given.flatMap((given, index) => {
    const isSeen = scene.ledger.real(index + 1) !== undefined
    return isSeen && isMeant(given) ? [twin(index + 1, scene)] : []
  })
}

function twin(modelled: number, { ledger }: HistoryScene): TwinNumber {
  const real = ledger.real(modelled)
  return real === undefined ? NEVER : { real, modelled }
}
