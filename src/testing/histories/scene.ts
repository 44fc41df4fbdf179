import type { ClaimRequest } from '../../contract/store.js'
import * as model from '../model.js'
import type { HistoryClient } from './clients.js'
import { type Floor, RESOURCES, type Target } from './commands.js'
import type { Ledger } from './ledger.js'

/** What is known of a history so far. */
export interface HistoryScene {
  readonly model: model.Model
  readonly ledger: Ledger
  /** Every claim that was ever made: who made it, and how. */
  readonly asked: { readonly client: number; readonly request: TwinRequest }[]
  readonly now: number
  readonly wallMs: number
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

/** No store ever gave it. */
export const NEVER: TwinNumber = { real: 1, modelled: -1 }

export function floorOf(floor: Floor, resource: string, { ledger, wallMs }: HistoryScene): number {
  if (floor === 'none') return 0
  if (floor === 'absurd') return Math.floor(wallMs * 1000) + 3_600_000_000
  return ledger.highest(resource) + (floor === 'ahead' ? 10_000_000 : 0)
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
  return numbersGiven(scene, (given) => given.kind === 'hold' && given.name === resource)
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
