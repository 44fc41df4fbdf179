import { useState } from 'preact/hooks'
import type { TimelineEntry } from '../shapes.js'
import { useNow } from './clock.js'
import { counted, durationText, timeText } from './format.js'
import { type Bar, type Lane, lanesOf, type Span, spanOf } from './lanes.js'
import { PartyLine } from './party.js'

const LONGEST_MS = 300_000
const FEW_LANES = 10

/** The last minutes as they were seen: one lane for each claim, waits hatched, holds solid. */
export function Timeline({ timeline }: { timeline: readonly TimelineEntry[] }) {
  const now = useNow()
  const [isWhole, setWhole] = useState(false)
  const lanes = lanesOf(timeline, now - LONGEST_MS, now)
  if (lanes.length === 0) return null
  const chosen = isWhole ? lanes : lanes.slice(0, FEW_LANES)
  const entries = chosen.flatMap(({ bars }) => bars.map(({ entry }) => entry))
  const span = spanOf(entries, now)
  const shown = lanesOf(entries, now - span.ms, now)
  return (
    <section class="card timeline">
      <h2>The last {span.words}</h2>
      <p class="legend">
        <svg aria-hidden="true">
          <Hatch />
          <rect class="waited" width="100%" height="100%" rx="2" />
        </svg>
        waits
        <svg aria-hidden="true">
          <rect class="held" width="100%" height="100%" rx="2" />
        </svg>
        holds
      </p>
      <div class="lanes">
        {shown.map((lane) => (
          <LaneRow key={lane.id} lane={lane} span={span} now={now} />
        ))}
        <div class="lane axis">
          <span />
          <svg aria-hidden="true">
            {span.marks.map(({ ms, text }) => (
              <text key={ms} x={`${(1 - ms / span.ms) * 100}%`} y="12">
                {text}
              </text>
            ))}
            <text class="end" x="100%" y="12">
              now
            </text>
          </svg>
        </div>
      </div>
      {lanes.length > FEW_LANES && (
        <button type="button" class="plain" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show fewer' : `Show all ${lanes.length}`}
        </button>
      )}
      <AsText timeline={timeline} />
    </section>
  )
}

function LaneRow({ lane, span, now }: { lane: Lane; span: Span; now: number }) {
  const words = lane.bars.map((bar) => `${bar.entry.state} ${lengthOf(bar.entry, now)}`).join(', ')
  return (
    <div class="lane">
      <PartyLine party={lane.first} />
      <svg role="img" aria-label={words}>
        {span.marks.map(({ ms }) => {
          const x = `${(1 - ms / span.ms) * 100}%`
          return <line key={ms} class="tick" x1={x} x2={x} y1="0" y2="100%" />
        })}
        {lane.bars.map((bar) => (
          <LaneBar key={`${bar.entry.state}${bar.entry.from}`} bar={bar} now={now} />
        ))}
      </svg>
    </div>
  )
}

function LaneBar({ bar, now }: { bar: Bar; now: number }) {
  const { entry } = bar
  return (
    <rect
      class={entry.state}
      x={`${bar.from * 100}%`}
      width={`${Math.max(0.3, (bar.to - bar.from) * 100)}%`}
      y="15%"
      height="70%"
      rx="2"
    >
      <title>{`${entry.state} ${lengthOf(entry, now)} from ${timeText(entry.from)}`}</title>
    </rect>
  )
}

/** The pattern of all waits; other drawings of the page use it by its id. */
function Hatch() {
  return (
    <defs>
      <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="ground" width="5" height="5" />
        <rect class="stroke" width="2" height="5" />
      </pattern>
    </defs>
  )
}

/** Made only while it is open: a long list would be made again each second. */
function AsText({ timeline }: { timeline: readonly TimelineEntry[] }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As text</summary>
      {isOpen && <Entries timeline={timeline} />}
    </details>
  )
}

function Entries({ timeline }: { timeline: readonly TimelineEntry[] }) {
  const now = useNow()
  const latest = [...timeline].sort((a, b) => Date.parse(b.from) - Date.parse(a.from)).slice(0, 100)
  return (
    <>
      <p class="faint">{counted(latest.length, 'entry', 'entries')}, the latest first</p>
      <ol class="entries">
        {latest.map((entry) => (
          <li key={`${entry.id}${entry.state}${entry.from}`}>
            <time dateTime={entry.from}>{timeText(entry.from)}</time> <PartyLine party={entry} />{' '}
            {entry.to === null ? (entry.state === 'held' ? 'holds for' : 'waits for') : entry.state}{' '}
            {lengthOf(entry, now)}
            {entry.fence !== null && `, fence ${entry.fence}`}
          </li>
        ))}
      </ol>
    </>
  )
}

function lengthOf({ from, to }: TimelineEntry, now: number): string {
  return durationText((to === null ? now : Date.parse(to)) - Date.parse(from))
}
