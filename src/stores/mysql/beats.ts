import type { Beat } from '../../contract/store.js'
import { keyOf, micros, number, toHex } from './values.js'

/** The beats of one pulse as the routine takes them: by line, and the lines in the order of their keys. */
export interface BeatGroups {
  /** The keys of the lines, without anything between. */
  readonly lines: string
  /** An array for each line, with an array for each beat. */
  readonly json: string
  /** The place of each beat, as it was given, among the answers. */
  readonly order: readonly number[]
  /** The line of each beat, as it was given. */
  readonly lineOf: readonly string[]
  resourceOf(line: string): string | undefined
}

export function groupBeats(space: string, beats: readonly Beat[]): BeatGroups {
  const lines = new Map<string, { resource: string; indexes: number[] }>()
  const keys = new Map<string, string>()
  const lineOf = beats.map(({ resource }, index) => {
    const line = keys.get(resource) ?? keyOf(space, resource)
    keys.set(resource, line)
    const group = lines.get(line) ?? { resource, indexes: [] }
    lines.set(line, group)
    group.indexes.push(index)
    return line
  })
  const sorted = [...lines].sort(([a], [b]) => (a < b ? -1 : 1))
  const order: number[] = []
  sorted
    .flatMap(([, { indexes }]) => indexes)
    .forEach((index, place) => {
      order[index] = place
    })
  const json = sorted.map(
    ([, { indexes }]) => `[${indexes.map((index) => words(beats[index] as Beat)).join(',')}]`,
  )
  return {
    lines: sorted.map(([line]) => line).join(''),
    json: `[${json.join(',')}]`,
    order,
    lineOf,
    resourceOf: (line) => lines.get(line)?.resource,
  }
}

function words({ id, leaseMs, presenceMs, permits, block }: Beat): string {
  const numbers = [micros(leaseMs), micros(presenceMs), number(permits ?? null), number(block ?? null)]
  return `["${toHex(id)}",${numbers.join(',').replaceAll('NULL', 'null')}]`
}
