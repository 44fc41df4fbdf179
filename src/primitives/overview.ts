import type { Env } from '../base/env.js'
import type { LineView } from '../contract/store.js'
import type { LockContext } from './reentry.js'
import { dateAt, type HolderView, resourceView, type WaiterView } from './views.js'

/** A leader of an election, as the election remembers it. */
export interface PastLeader {
  /** The name that the candidate gave itself. */
  id: string
  /** The number of the leadership. */
  term: number
  /** When it was elected, by its own clock; null: written by an older version. */
  since: Date | null
}

/** An election that somebody leads, wants to lead, or has led within the last 30 days. */
export interface ElectionView {
  /** The name of the election. */
  name: string
  /** The present leader; null: nobody leads. */
  leader: HolderView | null
  /** The number of the present leadership; null: nobody leads. */
  term: number | null
  /** The candidates in the order in which they would lead. */
  candidates: WaiterView[]
  /** The last leaders, the latest first; at most 100. */
  leaders: PastLeader[]
}

/** A latch that has been counted down at least once. */
export interface LatchView {
  /** The name of the latch. */
  name: string
  /** The number it counts from. */
  total: number
  /** How many counts are still missing. */
  count: number
}

/** A barrier at which parties wait, or have met within the last 30 days. */
export interface BarrierView {
  /** The name of the barrier. */
  name: string
  /** How many have to arrive; null: nobody is there who says so. */
  parties: number | null
  /** How many have arrived and wait for the others. */
  here: number
}

/** A job of `once()` that runs now, or may not be started again yet. */
export interface OnceView {
  /** The name of the job. */
  name: string
  /** The process that does it now; null: none. */
  running: HolderView | null
  /** The last start; null: so long ago that it may be started again, or not known. */
  last: OnceStart | null
}

/** When a job of `once()` was started. */
export interface OnceStart {
  /** When it began, by the clock of the process that ran it. */
  began: Date
  /** Until when nobody starts it again. */
  keptUntil: Date
}

/** What is made of lines and states: elections, latches, barriers, jobs. Each in order of names. */
export interface Overview {
  /** The elections. */
  elections: ElectionView[]
  /** The latches. */
  latches: LatchView[]
  /** The barriers. */
  barriers: BarrierView[]
  /** The jobs of `once()`. */
  once: OnceView[]
}

/** What the store has of one name. */
interface Found {
  readonly name: string
  readonly line: LineView | null
  /** The state, parsed; undefined: there is none, or nobody can read it. */
  readonly state: unknown
}

export async function overview(context: LockContext): Promise<Overview> {
  const { env } = context.engine
  const [elections, latches, barriers, once] = await Promise.all([
    found(context, 'election:'),
    found(context, 'latch:', { hasLine: false }),
    found(context, 'barrier:'),
    found(context, 'once:'),
  ])
  return {
    elections: elections.map((each) => electionView(each, env)),
    latches: latches.flatMap(latchView),
    barriers: barriers.map(barrierView),
    once: once.map((each) => onceView(each, env)),
  }
}

/** Everything whose key begins with the prefix, in order of names. */
async function found({ operator }: LockContext, prefix: string, { hasLine = true } = {}): Promise<Found[]> {
  const all = new Map<string, Found>()
  for await (const { key, value } of operator.states(prefix)) {
    const name = key.slice(prefix.length)
    all.set(name, { name, line: null, state: parse(value) })
  }
  if (hasLine)
    for await (const line of operator.inspect({ prefix })) {
      const name = line.resource.slice(prefix.length)
      all.set(name, { name, line, state: all.get(name)?.state })
    }
  return [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function electionView({ name, line, state }: Found, env: Env): ElectionView {
  const { holders, waiters } = partiesOf(line, env)
  const leader = holders[0] ?? null
  const announced = (Array.isArray(state) ? state : []).map(Object) as Record<string, unknown>[]
  const leaders = announced
    .map(({ id, term, at }) => ({ id: String(id), term: Number(term), since: dateOf(at) }))
    .reverse()
  return { name, leader, term: leader?.fence ?? null, candidates: waiters, leaders }
}

function latchView({ name, state }: Found): LatchView[] {
  const { total, count } = Object(state) as Record<string, unknown>
  return typeof total === 'number' && typeof count === 'number' ? [{ name, total, count }] : []
}

/** An arrival counts while its claim is alive. */
function barrierView({ name, line, state }: Found): BarrierView {
  const { here } = Object(state) as Record<string, unknown>
  const arrived = new Set(Array.isArray(here) ? here : [])
  const alive = line?.claims.filter(({ fence }) => fence !== null && arrived.has(fence)) ?? []
  return { name, parties: line?.capacity ?? null, here: alive.length }
}

function onceView({ name, line, state }: Found, env: Env): OnceView {
  const { began, keptUntil } = Object(state) as Record<string, unknown>
  const [from, to] = [dateOf(began), dateOf(keptUntil)]
  const last = from && to ? { began: from, keptUntil: to } : null
  return { name, running: partiesOf(line, env).holders[0] ?? null, last }
}

function partiesOf(line: LineView | null, env: Env): { holders: HolderView[]; waiters: WaiterView[] } {
  return line ? resourceView(line, env) : { holders: [], waiters: [] }
}

function dateOf(wallMs: unknown): Date | null {
  return typeof wallMs === 'number' ? dateAt(wallMs) : null
}

/** What another version wrote may be something else. */
function parse(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
