const PATHS = {
  search: 'M7 12.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM11 11l3.5 3.5',
  pause: 'M5.5 3v10M10.5 3v10',
  play: 'M4.5 2.8v10.4L13 8Z',
  back: 'M9.5 3 4.5 8l5 5',
  light:
    'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  dark: 'M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z',
  system: 'M2 3h12v8.5H2ZM5.5 14h5',
  filter: 'M1.5 3h13M4 8h8M6.5 13h3',
  lock: 'M3.5 7.5h9v6h-9ZM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
  fine: 'M3 8.5l3.2 3.2L13 4.8',
  risk: 'M8 2 1.5 13.5h13ZM8 6.5v3M8 11.5v.3',
  fault: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 4.5v4M8 11v.3',
} as const

export type IconName = keyof typeof PATHS

/** A line drawing of 16 by 16. What it means is said in text beside it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}
