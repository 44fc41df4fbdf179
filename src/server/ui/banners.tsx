import { useEffect, useState } from 'preact/hooks'
import { dataAgeMs } from './clock.js'
import type { Connection } from './feed.js'
import { durationText } from './format.js'
import { Icon } from './icons.js'
import { every, nowMs } from './machine.js'
import { visible } from './visible.js'

/** What is wrong between this page and the store, and how old the data have become. */
export function Banners(props: { trouble: string | null; connection: Connection; onRetry(): void }) {
  const { trouble, connection } = props
  if (!connection.isOpen)
    return (
      <Banner title="The connection to the dashboard server is lost.">
        <Retry atMs={connection.retryAtMs} />
        <button type="button" onClick={props.onRetry}>
          Try now
        </button>
      </Banner>
    )
  if (trouble !== null)
    return (
      <Banner title="The store does not answer.">
        <span class="reason">{visible(trouble)}</span>
      </Banner>
    )
  return null
}

function Banner({ title, children }: { title: string; children: preact.ComponentChildren }) {
  useSeconds()
  return (
    <div class="banner" role="alert">
      <Icon name="fault" />
      <strong>{title}</strong>
      {children}
      <span class="age">Data from {durationText(dataAgeMs())} ago</span>
    </div>
  )
}

function Retry({ atMs }: { atMs: number | null }) {
  const now = useSeconds()
  const leftMs = (atMs ?? 0) - now
  return <span>{leftMs > 0 ? `Next attempt in ${durationText(leftMs + 999)}.` : 'Trying …'}</span>
}

/** The reader's clock: the page's own one stands still meanwhile. */
function useSeconds(): number {
  const [now, setNow] = useState(nowMs)
  useEffect(() => every(1000, () => setNow(nowMs())), [])
  return now
}
