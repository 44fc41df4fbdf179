import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel'
import { onTestFinished } from 'vitest'

export interface Recorded {
  /** `acquire:start`, `hold:asyncEnd`, `fence`, … */
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: contexts of all channels
  readonly context: any
  /** The outcome at that moment. */
  readonly outcome: string | undefined
}

const TRACED = ['acquire', 'hold', 'run', 'pulse'] as const
const PLAIN = ['store', 'fence'] as const
const MOMENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const

/** Subscribes to every channel until the test ends. */
export function recordEvents(): Recorded[] {
  const events: Recorded[] = []
  const note = (event: string) => (context: unknown) => {
    const { outcome } = context as { outcome?: string }
    events.push({ event, context, outcome })
  }
  for (const name of TRACED) {
    const channel = tracingChannel(`holdfast:${name}`)
    for (const moment of MOMENTS) {
      const listener = note(`${name}:${moment}`)
      channel[moment].subscribe(listener)
      onTestFinished(() => void channel[moment].unsubscribe(listener))
    }
  }
  for (const name of PLAIN) {
    const listener = note(name)
    subscribe(`holdfast:${name}`, listener)
    onTestFinished(() => void unsubscribe(`holdfast:${name}`, listener))
  }
  return events
}

/** The events of that name: `acquire:asyncEnd`. */
export function named(events: readonly Recorded[], event: string): Recorded[] {
  return events.filter((each) => each.event === event)
}

/** The outcomes at the end of each request or hold, in the order of their ends. */
export function outcomes(events: readonly Recorded[], name: 'acquire' | 'hold'): (string | undefined)[] {
  return named(events, `${name}:asyncEnd`).map(({ outcome }) => outcome)
}
