import { countText } from './format.js'

/** With more permits than these a single one would be too thin to see. */
const MOST_SEGMENTS = 24

/** How many permits of a semaphore are in use. */
export function PermitBar({
  used,
  capacity,
  isLarge,
}: {
  used: number
  capacity: number
  isLarge?: boolean
}) {
  const part = capacity > 0 ? Math.min(1, used / capacity) : 0
  const isOver = used > capacity
  const words = `${countText(used)} of ${countText(capacity)}`
  return (
    <span class={`permits ${isLarge ? 'large' : ''} ${part >= 1 ? 'full' : ''} ${isOver ? 'over' : ''}`}>
      <svg class="bar" aria-hidden="true">
        <rect class="all" width="100%" height="100%" rx="2" />
        <rect class="used" width={`${part * 100}%`} height="100%" rx="2" />
        {capacity <= MOST_SEGMENTS &&
          Array.from({ length: capacity - 1 }, (_, index) => <Cut key={index} at={(index + 1) / capacity} />)}
      </svg>
      <span class="of" title={`${words} permits in use`}>
        {words}
      </span>
    </span>
  )
}

function Cut({ at }: { at: number }) {
  const x = `${at * 100}%`
  return <line class="cut" x1={x} x2={x} y1="0" y2="100%" />
}
