import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

const SPARE_ROWS = 10
/** Below this width a row has two lines. */
const NARROW = '(max-width: 720px)'
/** Of the bar at the top, under which no row may hide. */
const TOP_PX = 96

type Range = { first: number; last: number }

/** Whether the window is as narrow as a phone. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches)
  useEffect(() => {
    const query = matchMedia(NARROW)
    const listener = (): void => setNarrow(query.matches)
    query.addEventListener('change', listener)
    return () => query.removeEventListener('change', listener)
  }, [])
  return isNarrow
}

/**
 * Rows of one height that scroll with the window. Only those in sight are in the document, so ten
 * thousand cost as much as fifty. The arrow keys go from row to row: a row's `[data-row]` gets the
 * focus.
 */
export function Virtual(props: {
  count: number
  rowPx: number
  label: string
  onRange(first: number, last: number): void
  /** The reader goes up from the first row. */
  onLeave?(): void
  row(index: number, isActive: boolean): ComponentChildren
}) {
  const { count, rowPx, onRange } = props
  const place = useRef<HTMLDivElement>(null)
  const [range, setRange] = useState<Range>({ first: 0, last: 30 })
  const [active, setActive] = useState(0)
  const wanted = useRef<number | null>(null)

  useEffect(() => {
    const measure = (): void => {
      const top = place.current?.getBoundingClientRect().top ?? 0
      const first = Math.max(0, Math.floor(-top / rowPx) - SPARE_ROWS)
      const last = Math.min(count - 1, Math.ceil((innerHeight - top) / rowPx) + SPARE_ROWS)
      setRange((old) => (old.first === first && old.last === last ? old : { first, last }))
    }
    measure()
    addEventListener('scroll', measure, { passive: true })
    addEventListener('resize', measure)
    return () => {
      removeEventListener('scroll', measure)
      removeEventListener('resize', measure)
    }
  }, [count, rowPx])

  useEffect(() => onRange(range.first, range.last), [range.first, range.last, onRange])

  useEffect(() => {
    if (wanted.current === null) return
    const target = place.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"]`)
    target?.focus({ preventScroll: true })
    if (target) wanted.current = null
  })

  const moveTo = (index: number): void => {
    const next = Math.max(0, Math.min(count - 1, index))
    wanted.current = next
    setActive(next)
    const top = (place.current?.getBoundingClientRect().top ?? 0) + next * rowPx
    if (top < TOP_PX) scrollBy(0, top - TOP_PX)
    else if (top + rowPx > innerHeight) scrollBy(0, top + rowPx - innerHeight + 8)
  }

  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((innerHeight - TOP_PX) / rowPx) - 1)
    const steps: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: count - 1,
    }
    const target = steps[event.key]
    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    if (target < 0 && event.key === 'ArrowUp') props.onLeave?.()
    else moveTo(target)
  }

  const onFocus = (event: FocusEvent): void => {
    const index = (event.target as HTMLElement).closest<HTMLElement>('[data-row]')?.dataset['row']
    if (index !== undefined) setActive(Number(index))
  }

  const indexes: number[] = []
  for (let index = range.first; index <= Math.min(range.last, count - 1); index++) indexes.push(index)
  // The row to which Tab leads has to be one that is there.
  const stop = active >= range.first && active <= range.last ? active : (indexes[SPARE_ROWS] ?? indexes[0])
  return (
    <div
      class="virtual"
      role="rowgroup"
      aria-label={props.label}
      ref={place}
      style={{ height: `${count * rowPx}px` }}
      onKeyDown={onKeyDown}
      onFocusIn={onFocus}
    >
      <div class="window" role="presentation" style={{ transform: `translateY(${range.first * rowPx}px)` }}>
        {indexes.map((index) => props.row(index, index === stop))}
      </div>
    </div>
  )
}
