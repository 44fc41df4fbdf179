// The clock of the records. It is the machine's, also in a process whose own clock drifts.
import { openSync, readSync } from 'node:fs'

const path = process.env['HOLDFAST_WALL_OFFSET']
const file = path === undefined ? null : openSync(path, 'r')

/** Microseconds of the clock that all processes of this machine share. */
export function now() {
  const ns = Number(process.hrtime.bigint())
  return Math.round((file === null ? ns : withoutDrift(file, ns)) / 1000)
}

/** The file is that of `WallClock`: the newest of two drifts counts as soon as it has begun. */
function withoutDrift(opened, ns) {
  const numbers = new BigInt64Array(8)
  readSync(opened, numbers, 0, numbers.byteLength, 0)
  const places = numbers[1] === 0n ? [2, 5] : [5, 2]
  const [newest, other] = places.map((place) => Array.from(numbers.subarray(place, place + 3), Number))
  const [gained, since] = newest
  return turnedBack(ns, ns - gained < since ? other : newest)
}

function turnedBack(ns, [gained, since, ppm]) {
  return since + (ns - gained - since) / (1 + ppm / 1e6)
}
