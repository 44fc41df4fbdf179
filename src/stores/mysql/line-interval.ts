import { waiterMs } from '../shared/poll-interval.js'
import type { WaitedLine } from './known-claims.js'

/** The interval for a line in which the client waits. */
export function lineMs({ claims, nextPlace, lastPlace }: WaitedLine, restMs: number): number {
  const [first] = claims.values()
  const place = Math.max(0, (first?.place ?? nextPlace) - nextPlace) + 1
  // An estimate: the other clients have as many claims each as this one.
  const clients = (lastPlace - nextPlace + 1) / claims.size
  return waiterMs(place, restMs, clients)
}
