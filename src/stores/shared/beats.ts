import type { Beat } from '../../contract/store.js'

/** The beats of one line, by their indexes in the pulse. */
export interface LineBeats {
  readonly resource: string
  readonly indexes: readonly number[]
}

/** A server locks each line once, however many beats are for it. */
export function groupByLine(beats: readonly Beat[]): LineBeats[] {
  const groups = new Map<string, LineBeats & { indexes: number[] }>()
  beats.forEach(({ resource }, index) => {
    const known = groups.get(resource)
    if (known) known.indexes.push(index)
    else groups.set(resource, { resource, indexes: [index] })
  })
  return [...groups.values()]
}
