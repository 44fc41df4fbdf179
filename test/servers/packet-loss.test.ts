import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from './availability.js'
import { dropPackets, packetLossAvailability } from './packet-loss.js'
import { startRedis } from './redis.js'

const obstacle = packetLossAvailability()

describeOn('redis', 'packet loss', () => {
  const title = `ends when it is healed${obstacle ? ` (skipped: ${obstacle})` : ''}`
  it.skipIf(obstacle)(title, { timeout: 180_000 }, async () => {
    const redis = await startRedis()
    const rules = () => execFileSync('iptables', ['-w', '-S', 'INPUT'], { encoding: 'utf8' })
    const some = await dropPackets(redis.port, 0.3)
    expect(rules().match(new RegExp(`port ${redis.port} .*--mode random`, 'g'))).toHaveLength(2)
    // Some packets get through, and TCP sends the others again, after pauses that double: one
    // attempt may be out of luck for long.
    const isAnswered = () =>
      redis.cli('ping').then(
        (answer) => answer === 'PONG',
        () => false,
      )
    await eventually('an answer', isAnswered, 90_000)
    some.heal()

    const all = await dropPackets(redis.port, 1)
    const cut = redis.cli('ping')
    const isLate = Symbol()
    expect(await Promise.race([cut, new Promise((resolve) => setTimeout(resolve, 150, isLate))])).toBe(isLate)
    expect(all.heal()).toBeGreaterThan(0)
    expect(await cut).toBe('PONG')
    expect(rules()).not.toContain(`port ${redis.port} `)
    await redis.stop()
  })
})
