import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { describeOn } from './availability.js'
import { dropPackets, packetLossAvailability } from './packet-loss.js'
import { startRedis } from './redis.js'

const obstacle = packetLossAvailability()

describeOn('redis', 'packet loss', () => {
  it.skipIf(obstacle)(`ends when it is healed${obstacle ? ` (skipped: ${obstacle})` : ''}`, async () => {
    const redis = await startRedis()
    const rules = () => execFileSync('iptables', ['-w', '-S', 'INPUT'], { encoding: 'utf8' })
    const some = await dropPackets(redis.port, 0.3)
    expect(rules().match(new RegExp(`port ${redis.port} .*--mode random`, 'g'))).toHaveLength(2)
    // Some packets get through, and TCP sends the others again.
    expect(await redis.cli('ping')).toBe('PONG')
    some.heal()

    const all = await dropPackets(redis.port, 1)
    const cut = redis.cli('ping')
    const isLate = Symbol()
    expect(await Promise.race([cut, new Promise((resolve) => setTimeout(resolve, 150, isLate))])).toBe(isLate)
    all.heal()
    expect(await cut).toBe('PONG')
    expect(rules()).not.toContain(`port ${redis.port} `)
    await redis.stop()
  })
})
