import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Finding } from '../../src/index.js'
import { describeOnQuorum, type QuorumServers, startQuorum } from '../servers/quorum.js'
import { WallClock } from '../servers/wall-clock.js'
import { Bench } from './processes.js'
import { testCommands } from './store-cases.js'

const MIXED = ['redis', 'postgres', 'mariadb'] as const
const THREE_REDIS = ['redis', 'redis', 'redis'] as const

describeOnQuorum(MIXED, 'a store that is named quorum:', () => {
  let servers: QuorumServers
  beforeAll(async () => {
    servers = await startQuorum(MIXED)
  })
  afterAll(() => servers?.stop())

  testCommands(() => servers.url)

  it('says what is wrong with a URL', async () => {
    const bench = new Bench()
    const [one = '', two = ''] = servers.urls
    const pair = bench.holdfast(['ls', '--store', `quorum:${one},${two}`])
    expect(await pair.done).toMatchObject({ code: 64, stderr: expect.stringContaining('3, 5 or 7') })
    const same = bench.holdfast(['ls', '--store', `quorum:${one},${two},${one}`])
    expect(await same.done).toMatchObject({ code: 64, stderr: expect.stringContaining('the same server') })
  })
})

describeOnQuorum(THREE_REDIS, 'holdfast doctor on a quorum', () => {
  const running: { stop(): Promise<void> }[] = []
  const clock = new WallClock()
  afterAll(async () => {
    for (const each of running) await each.stop()
    clock.dispose()
  })

  async function start(...args: Parameters<typeof startQuorum>): Promise<QuorumServers> {
    const servers = await startQuorum(...args)
    running.push(servers)
    return servers
  }

  async function doctor(servers: QuorumServers, ...options: string[]) {
    const args = ['doctor', '--json', ...options, '--store', servers.url]
    const { code, stdout, stderr } = await new Bench().holdfast(args).done
    expect(stderr).toBe('')
    const findings = JSON.parse(stdout) as Finding[]
    const of = (about: string) => findings.find((each) => each.about === about)
    return { code, findings, of }
  }

  it('says how many members may fail, and how many are left', async () => {
    const servers = await start(THREE_REDIS)
    const sound = await doctor(servers)
    expect(sound.of('members')).toMatchObject({
      level: 'fine',
      text: expect.stringMatching(/3 of 3 .* 1 may fail/),
    })
    expect(sound.code).toBe(0)
    await servers.kill(1)
    const weak = await doctor(servers)
    expect(weak.of('members')).toMatchObject({
      level: 'risk',
      text: expect.stringMatching(/2 of 3 .*: 0 more may fail\. member 2 \(redis\): .*ECONNREFUSED/),
    })
    expect(weak.code).toBe(0)
    await servers.kill(2)
    const { code, stderr } = await new Bench().holdfast(['doctor', '--store', servers.url]).done
    expect([code, stderr]).toEqual([
      69,
      expect.stringMatching(/no majority: member 2 .*; member 3 .*2 of 3 are needed/),
    ])
  })

  it('says which members may lose data by a restart', async () => {
    const volatile = await doctor(await start(THREE_REDIS))
    expect(volatile.of('durability')?.text).toMatch(
      /member 1 \(redis\), member 2 \(redis\), member 3 \(redis\) may/,
    )
    const durable = await doctor(await start(THREE_REDIS, { persistence: 'always' }))
    expect(durable.of('durability')?.text).toMatch(/^All members keep their data through a restart/)
  })

  it.skipIf(clock.obstacle)('says how far the clocks of the members are apart', async () => {
    const servers = await start(THREE_REDIS, { clocks: [undefined, clock] })
    const together = await doctor(servers)
    expect(together.of('clocks')).toMatchObject({ level: 'fine' })
    clock.set(300)
    const apart = await doctor(servers)
    expect(apart.of('clocks')).toMatchObject({
      level: 'risk',
      text: expect.stringMatching(/ 5 min apart/),
    })
  })

  it('has the findings of each member', async () => {
    const { findings } = await doctor(await start(THREE_REDIS))
    for (const member of [1, 2, 3])
      expect(findings.some(({ about }) => about.startsWith(`member ${member} (redis): `))).toBe(true)
  })
})
