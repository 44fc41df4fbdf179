import type { Beat, ClaimRequest, Connection, StateView } from '../../contract/store.js'
import * as model from '../model.js'
import type { HistoryClient } from './clients.js'
import { type BeatPlan, type Command, RESOURCES, type Terms } from './commands.js'
import {
  findTarget,
  floorOf,
  type HistoryScene,
  NEVER,
  namedFence,
  seenFences,
  type TwinRequest,
  versionOf,
} from './scene.js'

/** A call to the store, and the same call to the model. */
export interface TwinCall {
  readonly client: HistoryClient
  /** For people. */
  readonly text: string
  /** What the call is given, for people. */
  readonly with: unknown
  /** The claims that the reply, or each of the replies, is about. */
  readonly about?: readonly Pick<Beat, 'resource' | 'id' | 'fences'>[]
  toStore(connection: Connection): Promise<unknown>
  toModel(before: model.Model, now: number): model.Outcome<unknown>
}

type Acting = Exclude<Command, { type: 'close' | 'advance' | 'inspect' }>

/** Makes the command's call, as things are now. */
export function callOf(command: Acting, scene: HistoryScene): TwinCall | null {
  switch (command.type) {
    case 'claim':
      return claimCall(command.client, claimRequest(command, scene), scene)
    case 'adopt':
      return claimCall(command.client, adoptRequest(command, scene), scene)
    case 'resend':
      return resendCall(command.index, scene)
    case 'pulse':
      return pulseCall(command, scene)
    case 'release':
      return releaseCall(command, scene)
    case 'evict':
      return evictCall(command, scene)
    case 'cancel':
      return cancelCall(command, scene)
    case 'resize':
      return resizeCall(command, scene)
    case 'read':
      return readCall(command, scene)
    case 'states':
      return statesCall(command, scene)
    case 'write':
      return writeCall(command, scene)
  }
}

type Of<T extends Command['type']> = Extract<Command, { type: T }>

function claimCall(clientIndex: number, request: TwinRequest, scene: HistoryScene): TwinCall {
  const client = scene.client(clientIndex)
  if (!scene.asked.some((each) => each.request === request))
    scene.asked.push({ client: clientIndex, request })
  return {
    client,
    text: 'claim',
    with: request.real,
    about: [request.real],
    toStore: async (connection) => connection.claim(request.real),
    toModel: (before, now) => model.claim(before, now, client.id, request.modelled),
  }
}

function claimRequest({ want, mode, terms }: Of<'claim'>, scene: HistoryScene): TwinRequest {
  const real: ClaimRequest = {
    ...want,
    ...common(want.resource, terms, scene),
    mode,
  }
  return { real, modelled: real }
}

function adoptRequest({ target, fence, index, terms }: Of<'adopt'>, scene: HistoryScene): TwinRequest {
  const { resource, id, number } = findTarget(target, '', scene)
  const past = seenFences(scene, resource)
  const chosen = fence === 'right' ? number : fence === 'past' ? (past[index % past.length] ?? NEVER) : NEVER
  // Its own permits and capacity say nothing: the place is taken as it is.
  const request = {
    resource,
    permits: 1,
    capacity: 1,
    mode: 'adopt' as const,
    ...common(resource, terms, scene),
  }
  return {
    real: { ...request, adopts: { id, fence: chosen.real } },
    modelled: { ...request, adopts: { id, fence: chosen.modelled } },
  }
}

function common(resource: string, { floor, maxWaiters, ...terms }: Terms, scene: HistoryScene) {
  const id = `k${scene.asked.length + 1}`
  const bound = maxWaiters === undefined ? {} : { maxWaiters }
  return { ...terms, ...bound, id, info: `info of ${id}`, floor: floorOf(floor, resource, scene) }
}

function resendCall(index: number, scene: HistoryScene): TwinCall | null {
  const again = scene.asked[scene.asked.length - 1 - (index % Math.max(1, scene.asked.length))]
  return again ? claimCall(again.client, again.request, scene) : null
}

/** A beat in the store's numbers and in the model's: they differ in the fences that it names. */
interface TwinBeat {
  readonly real: Beat
  readonly modelled: Beat
}

function pulseCall(command: Of<'pulse'>, scene: HistoryScene): TwinCall {
  const client = scene.client(command.client)
  const beats: TwinBeat[] = []
  for (const plan of command.beats) beats.push(twinBeat(plan, client, scene, beats))
  const [real, modelled] = [beats.map((beat) => beat.real), beats.map((beat) => beat.modelled)]
  return {
    client,
    text: 'pulse',
    with: real,
    about: real,
    toStore: (connection) => connection.pulse(real),
    toModel: (before, now) => model.pulse(before, now, modelled),
  }
}

/**
 * Only the first of several beats for one claim names fences: what it changes is not known before.
 */
function twinBeat(
  { target, permits, block, fences, ...durations }: BeatPlan,
  client: HistoryClient,
  scene: HistoryScene,
  before: readonly TwinBeat[],
): TwinBeat {
  const { resource, id } = findTarget(target, client.id, scene)
  const beat = { resource, id, ...durations, ...(permits === undefined ? {} : { permits }) }
  const isFirst = !before.some(({ real }) => real.resource === resource && real.id === id)
  if (!fences || !scene.takesFences || !isFirst) {
    const plain = { ...beat, ...(block === undefined ? {} : { block }) }
    return { real: plain, modelled: plain }
  }
  const { real, modelled } = namedFence(fences, beat, before.length, scene)
  const { count } = fences
  return {
    real: { ...beat, fences: { first: real, count } },
    modelled: { ...beat, fences: { first: modelled, count } },
  }
}

function releaseCall({ client: index, target, isElsewhere }: Of<'release'>, scene: HistoryScene): TwinCall {
  const client = scene.client(index)
  const found = findTarget(target, client.id, scene)
  const resource = isElsewhere ? nextTo(found.resource) : found.resource
  return {
    client,
    text: `release ${resource} ${found.id}`,
    with: undefined,
    toStore: async (connection) => connection.release(resource, found.id),
    toModel: (before, now) => model.release(before, now, resource, found.id),
  }
}

function nextTo(resource: string): string {
  const index = RESOURCES.indexOf(resource)
  return RESOURCES[(index + 1) % RESOURCES.length] ?? resource
}

function evictCall({ client, target, all }: Of<'evict'>, scene: HistoryScene): TwinCall {
  const { resource, number } = findTarget(target, '', scene)
  return {
    client: scene.client(client),
    text: `evict ${resource} ${all ? 'all' : number.real}`,
    with: undefined,
    toStore: (connection) => connection.evict(resource, all ? null : number.real),
    toModel: (before, now) => model.evict(before, now, resource, all ? null : number.modelled),
  }
}

function cancelCall({ client, target }: Of<'cancel'>, scene: HistoryScene): TwinCall {
  const { resource, id } = findTarget(target, '', scene)
  return {
    client: scene.client(client),
    text: `cancel ${resource} ${id}`,
    with: undefined,
    toStore: (connection) => connection.cancel(resource, id),
    toModel: (before, now) => model.cancel(before, now, resource, id),
  }
}

function resizeCall({ client, resource, declared, capacity }: Of<'resize'>, scene: HistoryScene): TwinCall {
  return {
    client: scene.client(client),
    text: `resize ${resource} from ${declared} to ${capacity}`,
    with: undefined,
    toStore: (connection) => connection.resize(resource, declared, capacity),
    toModel: (before, now) => model.resize(before, now, resource, declared, capacity),
  }
}

function readCall({ client: index, key, watch }: Of<'read'>, scene: HistoryScene): TwinCall {
  const client = scene.client(index)
  return {
    client,
    text: `read ${key}${watch ? ' and watch' : ''}`,
    with: undefined,
    toStore: (connection) => connection.read(key, watch),
    toModel: (before, now) => model.read(before, now, client.id, key, watch),
  }
}

function statesCall({ client, prefix }: Of<'states'>, scene: HistoryScene): TwinCall {
  return {
    client: scene.client(client),
    text: `states '${prefix}'`,
    with: undefined,
    async toStore(connection) {
      const states: StateView[] = []
      for await (const state of connection.states(prefix)) states.push(state)
      return states.sort((a, b) => (a.key < b.key ? -1 : 1))
    },
    toModel: (before, now) => model.states(before, now, prefix),
  }
}

function writeCall({ client, key, value, retentionMs, expect }: Of<'write'>, scene: HistoryScene): TwinCall {
  const version = versionOf(expect, key, scene)
  const change = { key, value, retentionMs, expect: version?.real ?? null }
  return {
    client: scene.client(client),
    text: 'write',
    with: change,
    toStore: (connection) => connection.write(change),
    toModel: (before, now) => model.write(before, now, { ...change, expect: version?.modelled ?? null }),
  }
}
