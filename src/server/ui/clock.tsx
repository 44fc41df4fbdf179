import { useEffect, useState } from 'preact/hooks'
import { durationText, timeText } from './format.js'
import { every, nowMs } from './machine.js'

// One clock for the whole page: thousands of rows count, and one timer ticks.
const listeners = new Set<() => void>()
let offsetMs: number | null = null
let frozenAtMs: number | null = null
/** When the freshest data came, by the reader's clock. */
let freshAtMs = nowMs()
let freshestMs = 0
let stop: (() => void) | null = null

/** How far an answer may turn the clock back. */
const BACK_MS = 20

/**
 * The server looked at the store at this time of its clock, on which all times in its answers are.
 * Some answers are fresher than others: the freshest counts, so that no figure goes back.
 */
export function setClock(asOf: string): void {
  const serverMs = Date.parse(asOf)
  if (Number.isNaN(serverMs)) return
  if (serverMs > freshestMs) freshAtMs = nowMs()
  freshestMs = Math.max(freshestMs, serverMs)
  const seenMs = serverMs - nowMs()
  offsetMs = offsetMs === null ? seenMs : Math.max(seenMs, offsetMs - BACK_MS)
  if (frozenAtMs !== null) frozenAtMs = Math.max(frozenAtMs, serverMs)
}

/** How old the data on the page are. */
export function dataAgeMs(): number {
  return nowMs() - freshAtMs
}

/** While the data stand still, so do the figures that count. */
export function freezeClock(isFrozen: boolean): void {
  frozenAtMs = isFrozen ? (frozenAtMs ?? serverNowMs()) : null
}

function serverNowMs(): number {
  return frozenAtMs ?? nowMs() + (offsetMs ?? 0)
}

/** Draws the component again each second. */
export function useNow(): number {
  const [, setTick] = useState(0)
  useEffect(() => {
    const listener = (): void => setTick((tick) => tick + 1)
    listeners.add(listener)
    stop ??= every(1000, () => {
      for (const each of [...listeners]) each()
    })
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0) return
      stop?.()
      stop = null
    }
  }, [])
  return serverNowMs()
}

/** How long something lasts already. */
export function Since({ ms }: { ms: number | null }) {
  const now = useNow()
  if (ms === null) return <span class="faint">–</span>
  return <span title={`since ${timeText(new Date(ms).toISOString())}`}>{durationText(now - ms)}</span>
}

/** How long something still lasts. */
export function Until({ iso }: { iso: string }) {
  const leftMs = Date.parse(iso) - useNow()
  if (Number.isNaN(leftMs)) return <span class="faint">–</span>
  const isNear = leftMs < 5000
  return (
    <span class={isNear ? 'near' : ''} title={`until ${timeText(iso)}`}>
      {leftMs <= 0 ? 'over' : durationText(leftMs)}
    </span>
  )
}
