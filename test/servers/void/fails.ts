import { expect, it } from 'vitest'

let attempts = 0

it('fails, and its process stood still', () => {
  attempts++
  if (attempts === 1) standStill(1500)
  expect(attempts).toBe(2)
})

it('fails for no such reason', () => {
  attempts++
  expect.fail(`attempt ${attempts - 2}`)
})

it('waits in vain for much longer than its process stood still', () => {
  standStill(1500)
  throw new Error(`Not within 30000 ms: attempt ${++attempts - 3}`)
})

function standStill(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
