import type { Party, ResourceDetail } from '../shapes.js'
import type { Action } from './actions.js'
import { Since, Until } from './clock.js'
import { nameOf } from './consequences.js'
import { countText } from './format.js'
import { Owner } from './party.js'
import { useSession } from './session.js'
import { Text } from './text.js'

/** Shown at once; a read lock or a large semaphore can have thousands. */
const MOST = 100

type Props = { resource: ResourceDetail; onAction(action: Action): void }

export function Holders({ resource, onAction }: Props) {
  const { info } = useSession()
  const { holders, capacity } = resource
  if (holders.length === 0) return null
  const rest = holders.length - MOST
  return (
    <section class="card">
      <h2>Holding</h2>
      <table class="parties">
        <thead>
          <tr>
            <th>Host</th>
            <th>Label</th>
            <th>Owner</th>
            <th>{capacity === null ? 'Mode' : 'Permits'}</th>
            <th class="number">Held for</th>
            <th class="number">Lease left</th>
            <th class="number">Fence</th>
            {info.allowChanges && (
              <th>
                <span class="unseen">Action</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {holders.slice(0, MOST).map((party) => (
            <tr key={party.id}>
              <Who party={party} />
              <td data-title={capacity === null ? 'Mode' : 'Permits'}>{modeOf(party, resource)}</td>
              <td data-title="Held for" class="number">
                <Since ms={Date.parse(party.since)} />
              </td>
              <td data-title="Lease left" class="number">
                <Until iso={party.expires} />
              </td>
              <td data-title="Fence" class="number code">
                {party.fence ?? '–'}
              </td>
              {info.allowChanges && (
                <td class="action">
                  <button
                    type="button"
                    class="act"
                    aria-label={`Break the hold of ${nameOf(party)}`}
                    onClick={() => onAction({ kind: 'break', party })}
                  >
                    Break
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && <p class="faint">and {countText(rest)} more</p>}
    </section>
  )
}

function Who({ party: { host, pid, label, owner } }: { party: Party }) {
  return (
    <>
      <td data-title="Host">
        <span class="party">
          {host === '' ? <span class="faint">unknown</span> : <Text value={host} class="host" most={80} />}
          {pid > 0 && <span class="pid">{pid}</span>}
        </span>
      </td>
      <td data-title="Label">
        {label ? <Text value={label} class="label" most={80} /> : <span class="faint">–</span>}
      </td>
      <td data-title="Owner">
        <Owner value={owner} />
      </td>
    </>
  )
}

export function modeOf({ permits, isWriter }: Party, { capacity }: ResourceDetail) {
  if (capacity !== null) return <span class="mode takes">{countText(permits)}</span>
  return <span class={`mode ${isWriter ? 'writes' : 'reads'}`}>{isWriter ? 'write' : 'read'}</span>
}
