import { expect, it } from 'vitest'
import { DEFAULT_SETTINGS, longestWaitMs, settingsOf } from '../../src/redlock/settings.js'

it.each([
  [{}, 3000],
  [{ retryCount: 0 }, 0],
  [{ retryCount: -1 }, Infinity],
  [{ retryCount: Infinity }, Infinity],
  [{ retryCount: 5, retryDelay: 100, retryJitter: 0 }, 500],
  [{ retryCount: 5, retryDelay: 0, retryJitter: 0 }, 5],
  [{ retryCount: -2 }, 0],
])('the settings %j wait for %d ms', (given, waitMs) => {
  expect(longestWaitMs(settingsOf(given, DEFAULT_SETTINGS))).toBe(waitMs)
})

it('what is not a number counts as left out', () => {
  const others = settingsOf({ retryCount: 7 }, DEFAULT_SETTINGS)
  expect(settingsOf({ retryCount: undefined, retryDelay: 5 }, others)).toEqual({
    driftFactor: 0.01,
    retryCount: 7,
    retryDelay: 5,
    retryJitter: 100,
    automaticExtensionThreshold: 500,
  })
})
