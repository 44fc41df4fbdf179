import type { Party, ResourceDetail } from '../shapes.js'
import type { Action } from './actions.js'
import { Since, Until } from './clock.js'
import { nameOf } from './consequences.js'
import { countText } from './format.js'
import { modeOf } from './holders.js'
import type { Pages } from './pages.js'
import { Owner, PartyLine } from './party.js'
import { useSession } from './session.js'
import { useNarrow, Virtual } from './virtual.js'

/** As in app.css. */
const ROW_PX = { wide: 36, narrow: 64 } as const

/** The whole line behind the gate, of any length. */
export function Waiters(props: {
  resource: ResourceDetail
  pages: Pages<Party>
  onRange(first: number, last: number): void
  onAction(action: Action): void
}) {
  const { resource, pages } = props
  const { info } = useSession()
  const isNarrow = useNarrow()
  const total = resource.waitersTotal
  return (
    <section class="card">
      <h2>
        Waiting <span class="count">{countText(total)}</span>
      </h2>
      <div class="rows" role="table" aria-label="Waiters" aria-rowcount={total + 1}>
        <div role="rowgroup" class="heads">
          <div role="row" class={`waiter-row head ${info.allowChanges ? 'acts' : ''}`} aria-rowindex={1}>
            <span role="columnheader" class="number">
              #
            </span>
            <span role="columnheader">Waiter</span>
            <span role="columnheader">Owner</span>
            <span role="columnheader">{resource.capacity === null ? 'Mode' : 'Permits'}</span>
            <span role="columnheader" class="number">
              Waits for
            </span>
            <span role="columnheader" class="number">
              Place kept for
            </span>
            {info.allowChanges && (
              <span role="columnheader">
                <span class="unseen">Action</span>
              </span>
            )}
          </div>
        </div>
        <Virtual
          count={total}
          rowPx={isNarrow ? ROW_PX.narrow : ROW_PX.wide}
          label="Waiters"
          onRange={props.onRange}
          row={(index, isActive) => (
            <WaiterRow
              key={index}
              index={index}
              party={pages.at(index)}
              resource={resource}
              isActive={isActive}
              onAction={props.onAction}
            />
          )}
        />
      </div>
    </section>
  )
}

function WaiterRow(props: {
  index: number
  party: Party | undefined
  resource: ResourceDetail
  isActive: boolean
  onAction(action: Action): void
}) {
  const { index, party, resource, isActive } = props
  const { info } = useSession()
  const position = index + 1
  if (!party)
    return (
      <div role="row" class="waiter-row unloaded" aria-rowindex={index + 2}>
        <span role="cell" class="number faint">
          {countText(position)}
        </span>
      </div>
    )
  return (
    <div role="row" class={`waiter-row ${info.allowChanges ? 'acts' : ''}`} aria-rowindex={index + 2}>
      <span role="cell" class="number faint position">
        {countText(position)}
      </span>
      <span role="cell" class="by">
        <PartyLine party={party} />
      </span>
      <span role="cell" class="owned">
        <Owner value={party.owner} />
      </span>
      <span role="cell">{modeOf(party, resource)}</span>
      <span role="cell" class="number">
        <Since ms={Date.parse(party.since)} />
      </span>
      <span role="cell" class="number kept">
        <Until iso={party.expires} />
      </span>
      {info.allowChanges && (
        <span role="cell" class="action">
          <button
            type="button"
            class="act"
            data-row={index}
            tabIndex={isActive ? 0 : -1}
            aria-label={`Cancel waiter ${position}, ${nameOf(party)}`}
            onClick={() => props.onAction({ kind: 'cancel', party, position })}
          >
            Cancel
          </button>
        </span>
      )}
    </div>
  )
}
