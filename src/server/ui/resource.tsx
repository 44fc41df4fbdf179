import { useCallback, useEffect, useState } from 'preact/hooks'
import type { ResourceDetail } from '../shapes.js'
import { type Action, ActionDialog } from './actions.js'
import { useDetail } from './detail.js'
import { Empty } from './empty.js'
import { counted } from './format.js'
import { Holders } from './holders.js'
import { Icon } from './icons.js'
import { LinePicture } from './line.js'
import { PermitBar } from './permits.js'
import { Problem } from './problem.js'
import { Badge } from './resource-row.js'
import { hashOf } from './route.js'
import { useSession } from './session.js'
import { Text } from './text.js'
import { Timeline } from './timeline.js'
import { visible } from './visible.js'
import { Waiters } from './waiters.js'

/** One resource: its line as a picture, who holds and waits, and the last minutes. */
export function ResourceView() {
  const { route, info, go } = useSession()
  const { name, space } = route
  const detail = useDetail(name)
  const { resource, waiters } = detail
  const [action, setAction] = useState<Action | null>(null)

  useEffect(() => {
    document.title = `${visible(name)} · Holdfast`
  }, [name])

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isInDialog = document.querySelector('dialog[open]') !== null
      if (event.key === 'Escape' && !isInDialog) go({ view: 'resources', name: '' })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [go])

  const close = useCallback(() => setAction(null), [])
  const done = detail.reload
  const isFree = resource !== null && resource.holders.length === 0 && resource.waitersTotal === 0
  return (
    <article class="resource">
      <a class="back" href={hashOf({ space })}>
        <Icon name="back" /> Resources
      </a>
      <div class="title">
        <h1>
          <Text value={name} class="code" most={400} />
        </h1>
        {resource && <Badge kind={resource.kind} />}
        {resource && <span class="state">{stateOf(resource)}</span>}
        {resource && info.allowChanges && <Actions resource={resource} onAction={setAction} />}
      </div>
      <Problem text={detail.problem} />
      {resource && resource.capacity !== null && (
        <PermitBar used={resource.used} capacity={resource.capacity} isLarge />
      )}
      {isFree && (
        <Empty title="Free">
          <p>Nobody holds this or waits for it. It appears here as soon as someone does.</p>
        </Empty>
      )}
      {resource && !isFree && (
        <>
          <LinePicture resource={resource} />
          <Holders resource={resource} onAction={setAction} />
        </>
      )}
      {resource && <Timeline timeline={resource.timeline} />}
      {resource && resource.waitersTotal > 0 && (
        <Waiters resource={resource} pages={waiters} onRange={detail.see} onAction={setAction} />
      )}
      {action && resource && (
        <ActionDialog action={action} resource={resource} onClose={close} onDone={done} />
      )}
    </article>
  )
}

function Actions({ resource, onAction }: { resource: ResourceDetail; onAction(action: Action): void }) {
  if (resource.capacity === null || resource.kind !== 'semaphore') return null
  return (
    <button type="button" class="act" onClick={() => onAction({ kind: 'resize' })}>
      Resize
    </button>
  )
}

/** `Held by 3 readers, 40 wait`. */
function stateOf({ holders, waitersTotal, capacity }: ResourceDetail): string {
  const isRead = holders.length > 0 && holders.every((holder) => !holder.isWriter)
  const word = capacity === null && isRead ? 'reader' : 'holder'
  const held = holders.length === 0 ? 'Free' : `${counted(holders.length, word)}`
  return `${held}, ${waitersTotal === 0 ? 'nobody waits' : counted(waitersTotal, 'waiter')}`
}
