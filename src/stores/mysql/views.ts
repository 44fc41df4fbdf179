import type { ClaimView, LineView } from '../../contract/store.js'
import { fromHex } from './values.js'

/** One row of the routine `view`: a line, and one of its claims if it has any. */
type ViewRow = readonly [resource: string, capacity: number, isPinned: boolean, claim: ClaimView | null]

export interface SeenLine extends LineView {
  readonly isPinned: boolean
}

/** The lines of these rows, in their order. */
export function linesOf(rows: readonly unknown[]): SeenLine[] {
  const lines: (SeenLine & { claims: ClaimView[] })[] = []
  let last: string | undefined
  for (const [name, capacity, isPinned, claim] of rows as ViewRow[]) {
    if (name !== last) lines.push({ resource: fromHex(name), capacity, isPinned, claims: [] })
    last = name
    if (claim) lines.at(-1)?.claims.push(claimView(claim))
  }
  return lines
}

/** Ids and infos travel in hexadecimal. */
export function claimView(claim: ClaimView): ClaimView {
  return { ...claim, id: fromHex(claim.id), info: fromHex(claim.info) }
}
