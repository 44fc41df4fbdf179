import { useRef, useState } from 'preact/hooks'
import type { Party, ResourceDetail } from '../shapes.js'
import { post } from './api.js'
import { ofBreaking, ofCancelling, ofResizing } from './consequences.js'
import { pathOf } from './detail.js'
import { Dialog } from './dialog.js'
import { useSession } from './session.js'
import { Text } from './text.js'
import { wordsOf } from './visible.js'

export type Action =
  | { kind: 'break'; party: Party }
  | { kind: 'cancel'; party: Party; position: number }
  | { kind: 'resize' }

const TITLES = { break: 'Break this hold?', cancel: 'Cancel this waiter?', resize: 'Resize the semaphore' }
const VERBS = { break: 'Break the hold', cancel: 'Cancel the waiter', resize: 'Resize' }

type Outcome = { isDone: boolean; text: string }

/** Says what will happen, asks back, and shows what has happened. */
export function ActionDialog(props: {
  action: Action
  resource: ResourceDetail
  onClose(): void
  onDone(): void
}) {
  const { route, failed } = useSession()
  // What is asked about is what was seen when the dialog opened; the page behind it goes on.
  const { current: resource } = useRef(props.resource)
  const { action } = props
  const [capacity, setCapacity] = useState(String(resource.capacity ?? 1))
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const [isBusy, setBusy] = useState(false)
  const wanted = Number(capacity)
  const isPossible = action.kind !== 'resize' || (isCapacity(wanted) && wanted !== resource.capacity)

  const carryOut = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    try {
      setOutcome(await changed(action, wanted, { name: resource.name, space: route.space }))
    } catch (error) {
      failed(error)
      setOutcome({ isDone: false, text: wordsOf(error) })
    }
    setBusy(false)
    props.onDone()
  }

  return (
    <Dialog title={outcome?.isDone ? 'Done' : TITLES[action.kind]} onClose={props.onClose}>
      <form onSubmit={carryOut}>
        <p class="subject">
          <Text value={resource.name} class="code" most={120} />
        </p>
        {!outcome?.isDone && action.kind === 'resize' && (
          <label class="field">
            <span>Permits</span>
            <input
              type="number"
              min="1"
              max={2 ** 30 - 1}
              step="1"
              required
              value={capacity}
              onInput={(event) => setCapacity(event.currentTarget.value)}
            />
          </label>
        )}
        {!outcome?.isDone && (
          <ul class="facts" aria-live="polite">
            {factsOf(action, resource, wanted).map((fact) => (
              <li key={fact}>{fact}</li>
            ))}
          </ul>
        )}
        {outcome && (
          <p class={outcome.isDone ? 'done' : 'problem'} role="alert">
            {outcome.text}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={props.onClose} autofocus={action.kind !== 'resize'}>
            {outcome?.isDone ? 'Close' : 'Leave it'}
          </button>
          {!outcome?.isDone && (
            <button
              type="submit"
              class={action.kind === 'resize' ? 'main' : 'danger'}
              disabled={isBusy || !isPossible}
            >
              {VERBS[action.kind]}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  )
}

function isCapacity(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 1 && number < 2 ** 30
}

function factsOf(action: Action, resource: ResourceDetail, capacity: number): string[] {
  if (action.kind === 'resize') return ofResizing(resource, capacity)
  if (action.kind === 'cancel') return ofCancelling(resource, action.party, action.position)
  return ofBreaking(resource, action.party)
}

async function changed(
  action: Action,
  capacity: number,
  parameters: Record<string, string>,
): Promise<Outcome> {
  if (action.kind === 'resize') {
    const result = await post<{ capacity: number }>(pathOf('resize'), { capacity }, parameters)
    return { isDone: true, text: `The semaphore has ${result.capacity} permits now.` }
  }
  if (action.kind === 'cancel') {
    const { id } = action.party
    const { cancelled } = await post<{ cancelled: Party[] }>(pathOf('cancel'), { id }, parameters)
    return cancelled.length > 0
      ? { isDone: true, text: 'The waiter is out of the line, and its request has failed.' }
      : { isDone: false, text: 'It no longer waits: it was granted, or it left.' }
  }
  const { fence } = action.party
  const { revoked } = await post<{ revoked: Party[] }>(pathOf('break'), { fence }, parameters)
  return revoked.length > 0
    ? { isDone: true, text: 'The hold is broken.' }
    : { isDone: false, text: 'It was not held any more: its holder had left before.' }
}
