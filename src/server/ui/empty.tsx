import type { ComponentChildren } from 'preact'
import { Text } from './text.js'

/** A space in which nothing is locked now: that is good news, and says how to see something. */
export function EmptySpace({ space }: { space: string }) {
  return (
    <Empty title="Nothing is locked">
      <p>
        Nobody holds or waits for a lock in the space <Text value={space} class="code" most={60} />. What your
        programs lock appears here by itself:
      </p>
      <pre>
        <code>{"await locks.mutex('order:42').run(work)"}</code>
      </pre>
    </Empty>
  )
}

export function Nothing({ onClear }: { onClear(): void }) {
  return (
    <Empty title="Nothing matches">
      <p>No resource in this space matches the search and the filters.</p>
      <button type="button" onClick={onClear}>
        Clear them
      </button>
    </Empty>
  )
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <svg viewBox="0 0 120 48" aria-hidden="true">
        <rect class="gate" x="10" y="8" width="28" height="32" rx="6" />
        <circle class="place" cx="62" cy="24" r="9" />
        <circle class="place" cx="86" cy="24" r="9" />
        <circle class="place" cx="110" cy="24" r="9" />
      </svg>
      <h2>{title}</h2>
      {children}
    </section>
  )
}
