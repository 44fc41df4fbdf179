import type { ResourceKind, ResourceSummary } from '../shapes.js'
import { Since } from './clock.js'
import { counted, countText } from './format.js'
import { PartyLine } from './party.js'
import { PermitBar } from './permits.js'
import type { Row } from './resource-list.js'
import { hashOf } from './route.js'
import { useSession } from './session.js'
import { Text } from './text.js'

/** As in app.css. */
export const ROW_PX = { wide: 40, narrow: 76 } as const

/** Ten thousand waiters fill the bar; the first few are told apart, too. */
const FULL_LINE = Math.log10(10_000)

export function ResourceRow(props: { index: number; row: Row | undefined; isActive: boolean }) {
  const { index, row, isActive } = props
  const { route } = useSession()
  if (!row)
    return (
      <div role="row" class="resource-row unloaded" aria-rowindex={index + 2}>
        <span role="cell">
          <span class="unseen">Loading</span>
        </span>
      </div>
    )
  const { name, kind, holder, holders, waiters } = row
  return (
    <div role="row" class={`resource-row ${waiters > 0 ? 'waited' : ''}`} aria-rowindex={index + 2}>
      <span role="cell" class="name">
        <a
          href={hashOf({ view: 'resource', name, space: route.space })}
          data-row={index}
          tabIndex={isActive ? 0 : -1}
        >
          <Text value={name} class="code" />
        </a>
        <Badge kind={kind} />
      </span>
      <span role="cell" class="use">
        <Use row={row} />
      </span>
      <span role="cell" class="by">
        {holder ? <PartyLine party={holder} /> : <span class="faint">nobody</span>}
        {holders > 1 && <span class="more">+{countText(holders - 1)}</span>}
      </span>
      <span role="cell" class="number held">
        <Since ms={row.heldSinceMs} />
      </span>
      <span role="cell" class="number behind">
        <span class="queue" style={{ width: `${queuePart(waiters) * 100}%` }} />
        <span class={waiters > 0 ? 'strong' : 'faint'}>{countText(waiters)}</span>
        <span class="narrow-only">{waiters === 1 ? ' waits' : ' wait'}</span>
      </span>
      <span role="cell" class="number oldest">
        <Since ms={row.waitSinceMs} />
      </span>
    </div>
  )
}

export function Badge({ kind }: { kind: ResourceKind }) {
  return <span class={`badge ${kind}`}>{kind}</span>
}

/** For a semaphore a bar of its permits; for a lock the word. */
function Use({ row }: { row: ResourceSummary }) {
  const { capacity, used, holders, readers } = row
  if (capacity !== null) return <PermitBar used={used} capacity={capacity} />
  if (holders === 0) return <span class="faint">free</span>
  return readers ? (
    <span class="mode reads">{counted(holders, 'reader')}</span>
  ) : (
    <span class="mode writes">exclusive</span>
  )
}

function queuePart(waiters: number): number {
  return Math.min(1, Math.log10(1 + waiters) / FULL_LINE)
}
