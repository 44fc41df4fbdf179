import type { Party, ResourceDetail } from '../shapes.js'
import { nameOf } from './consequences.js'
import { counted, countText } from './format.js'
import { Icon } from './icons.js'
import { Text } from './text.js'
import { useNarrow } from './virtual.js'

const MOST_HOLDERS = 16
const MOST_WAITERS = { wide: 24, narrow: 8 }

/**
 * The line as a picture: holders inside, the gate, then waiters in their order. Writers are square
 * and readers round; each also says in a word what it is.
 */
export function LinePicture({ resource }: { resource: ResourceDetail }) {
  const { holders, waiters, waitersTotal } = resource
  const inside = holders.slice(0, MOST_HOLDERS)
  const outside = waiters.slice(0, useNarrow() ? MOST_WAITERS.narrow : MOST_WAITERS.wide)
  return (
    <section class="card">
      <h2>The line</h2>
      <div class="line" role="img" aria-label={wordsFor(resource)}>
        <div class="inside">
          {inside.map((party) => (
            <Tile key={party.id} party={party} resource={resource} />
          ))}
          {holders.length === 0 && <span class="faint">nobody</span>}
          <Rest count={holders.length - inside.length} />
        </div>
        <div class="gate">
          <Icon name="back" />
        </div>
        <div class="outside">
          {outside.map((party, index) => (
            <Tile key={party.id} party={party} resource={resource} position={index + 1} />
          ))}
          {waitersTotal === 0 && <span class="faint">nobody waits</span>}
          <Rest count={waitersTotal - outside.length} />
        </div>
      </div>
    </section>
  )
}

function Tile(props: { party: Party; resource: ResourceDetail; position?: number }) {
  const { party, resource, position } = props
  const shape = resource.capacity !== null ? 'takes' : party.isWriter ? 'writer' : 'reader'
  const place = position === undefined ? 'holds' : 'waits'
  return (
    <div class={`tile ${shape} ${place}`} title={nameOf(party)}>
      <span class="shape">
        <span class="place">{position ?? <Icon name="lock" />}</span>
        <span class="what">{whatOf(party, resource)}</span>
      </span>
      <Text value={party.label ?? (party.host === '' ? party.owner : party.host)} class="who" most={40} />
    </div>
  )
}

function Rest({ count }: { count: number }) {
  return count > 0 ? <span class="rest">+ {countText(count)} more</span> : null
}

function whatOf({ permits, isWriter }: Party, { capacity }: ResourceDetail): string {
  if (capacity !== null) return `× ${countText(permits)}`
  return isWriter ? 'write' : 'read'
}

/** The picture for someone who does not see it. */
function wordsFor(resource: ResourceDetail): string {
  const { holders, waiters, waitersTotal } = resource
  const list = (parties: readonly Party[]): string =>
    parties
      .slice(0, 5)
      .map((party) => `${nameOf(party)} ${whatOf(party, resource)}`)
      .join('; ')
  const held =
    holders.length === 0 ? 'Nobody holds it.' : `${counted(holders.length, 'holder')}: ${list(holders)}.`
  const waited =
    waitersTotal === 0 ? 'Nobody waits.' : `${counted(waitersTotal, 'waiter')}, first: ${list(waiters)}.`
  return `${held} ${waited}`
}
