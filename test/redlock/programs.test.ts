import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { beside, Programs, text } from './programs.js'

const OURS = { "'redlock'": "'holdfast/redlock'" }
const OURS_4 = {
  "require('redlock')": "require('holdfast/redlock/v4').default",
  // The package is not installed here.
  "require('bluebird')": `require('${beside('v4/using.cjs')}')`,
}
/** How often the old package may serve all contenders by luck. */
const MOST_ROUNDS = 8

describeOn('redis', 'programs that were written for redlock', () => {
  let server: RedisServer
  let programs: Programs

  beforeAll(async () => {
    server = await startRedis()
    programs = new Programs(server.url)
  })
  afterAll(async () => {
    programs?.remove()
    await server?.stop()
  })
  beforeEach(async () => void (await server.cli('flushall')))

  it.each(['transfer', 'extend', 'errors', 'lost', 'lapse'])(
    'version 5: %s prints the same with holdfast/redlock',
    async (name) => {
      const before = await programs.run(`v5/${name}.mjs`)
      await server.cli('flushall')
      expect(await programs.run(`v5/${name}.mjs`, OURS)).toBe(before)
      expect(before.split('\n').length).toBeGreaterThan(3)
    },
  )

  // The texts are what redlock 4.2.0 with Bluebird 3.7.2 prints.
  it.each(['promises', 'callbacks', 'disposers'])(
    'version 4: %s prints the same with holdfast/redlock/v4',
    async (name) => {
      expect(await programs.run(`v4/${name}.cjs`, OURS_4)).toBe(text(`v4/${name}.txt`))
    },
  )

  it('a lock that is let lapse needs no release, and no variable', async () => {
    expect(await programs.run('v5/dropped.mjs')).toBe('watched aborts\nboth are free\n')
  })

  it('thirty contenders with the default settings: redlock gives up on some, Holdfast serves all', {
    timeout: 120_000,
  }, async () => {
    expect(JSON.parse(await programs.run('v5/contenders.mjs', OURS))).toEqual({ served: 30, most: 1 })
    let served = 30
    for (let round = 0; round < MOST_ROUNDS && served === 30; round++)
      served = JSON.parse(await programs.run('v5/contenders.mjs')).served
    expect(served).toBeLessThan(30)
  })
})
