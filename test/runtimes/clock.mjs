// Prints the time that the conformance suite of the built package reads on this runtime.
import { now } from '../../dist/cjs/testing/clock.js'

console.log(now())
