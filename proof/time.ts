import { now } from '../src/testing/conformance/checks.js'

/** Microseconds of the clock that all processes of this machine share. */
export function nowUs(): number {
  return Math.round(now() * 1000)
}
