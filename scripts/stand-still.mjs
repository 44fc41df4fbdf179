// Loaded into every Node process of `npm run test:pauses`: lets it stand still at random, above all
// right before and after it reads a clock, where a pause between two reads falsifies what a test
// computes of them.
const chance = Number(process.env.HOLDFAST_PAUSES_CHANCE)
const usualMs = Number(process.env.HOLDFAST_PAUSES_MS)
const longestMs = Number(process.env.HOLDFAST_PAUSES_LONGEST_MS)
const LONG_ONES = 0.05

const cell = new Int32Array(new SharedArrayBuffer(4))

function standStill() {
  const ms = Math.random() < LONG_ONES ? longestMs * Math.random() : 1 + usualMs * Math.random()
  Atomics.wait(cell, 0, 0, ms)
}

function disturbed(read) {
  return (...args) => {
    if (Math.random() < chance) standStill()
    const time = read(...args)
    if (Math.random() < chance) standStill()
    return time
  }
}

const { hrtime } = process
process.hrtime = Object.assign(disturbed(hrtime.bind(process)), {
  bigint: disturbed(hrtime.bigint.bind(hrtime)),
})
performance.now = disturbed(performance.now.bind(performance))
Date.now = disturbed(Date.now)

// And in between turns of the event loop.
function later() {
  const pause = () => {
    if (Math.random() < 0.3) standStill()
    later()
  }
  setTimeout(pause, 20 + 200 * Math.random()).unref()
}
later()
