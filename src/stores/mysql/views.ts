import type { ClaimView, LineView } from '../../contract/store.js'
import { fromHex } from './values.js'

/** One row of the routine `view`: a line, and one of its claims if it has any. */
type ViewRow = readonly [resource: string, capacity: number, declared: number | null, claim: ClaimView | null]

/** The lines of these rows, in their order. */
export function linesOf(rows: readonly unknown[]): LineView[] {
  const lines: (LineView & { claims: ClaimView[] })[] = []
  let last: string | undefined
  for (const [name, capacity, declared, claim] of rows as ViewRow[]) {
    const pinned = declared === null ? {} : { declared }
    if (name !== last) lines.push({ resource: fromHex(name), capacity, ...pinned, claims: [] })
    last = name
    if (claim) lines.at(-1)?.claims.push(claimView(claim))
  }
  return lines
}

/** Ids and infos travel in hexadecimal. */
export function claimView(claim: ClaimView): ClaimView {
  return { ...claim, id: fromHex(claim.id), info: fromHex(claim.info) }
}
