import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { ZooKeeperClient, ZooKeeperError } from '../../src/drivers/zookeeper/index.js'
import { eventually, now, settled } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import {
  QUICK_ELECTION,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperServer,
} from '../servers/zookeeper.js'
import { client, failsWith, type NotedClient } from './zookeeper/helpers.js'

describeOn('zookeeper', 'the ZooKeeper client with three servers', () => {
  let ensemble: ZooKeeperEnsemble
  let leader: ZooKeeperServer
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble({ config: QUICK_ELECTION })
  })
  afterAll(() => ensemble?.stop())

  beforeEach(async () => {
    leader = await ensemble.leader()
  })
  afterEach(async () => {
    for (const member of ensemble.members) {
      member.resume()
      if (!member.isRunning) await member.start()
    }
    await eventually('all three', async () => (await ensemble.serving()).length === 3)
  })

  /** The member that serves this client's session. */
  async function servedBy(zk: ZooKeeperClient): Promise<ZooKeeperServer> {
    const sid = `sid=0x${zk.session?.id.toString(16)}`
    let found: ZooKeeperServer | undefined
    await eventually('the server of the session', async () => {
      for (const member of ensemble.members)
        if ((await member.ask('cons').catch(() => '')).includes(sid)) found = member
      return found !== undefined
    })
    return found ?? expect.fail('no server')
  }

  /** A client that is connected to the leader, or to a follower. */
  async function connectedTo(which: 'leader' | 'follower', sessionTimeout: number): Promise<NotedClient> {
    for (;;) {
      const zk = client(ensemble.address, { sessionTimeout, requestTimeout: '50s', closeTimeout: 500 })
      await zk.sync()
      if (((await servedBy(zk)) === leader) === (which === 'leader')) return zk
      await zk.close()
    }
  }

  /** Asked again while connections break: a server whose leader is gone hangs up, too. */
  async function answered<T>(ask: () => Promise<T>): Promise<T> {
    const deadline = now() + 50_000
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if ((error as ZooKeeperError).code !== 'CONNECTION_LOSS' || now() > deadline) throw error
      }
    }
  }

  it.each(['follower', 'leader'] as const)('leaves a frozen %s, and the session lives on', async (which) => {
    const zk = await connectedTo(which, 8000)
    const { path } = await zk.create('/frozen-', { mode: 'ephemeralSequential' })
    const events: string[] = []
    await zk.exists(path, { watch: ({ type }) => events.push(type) })
    const session = zk.session
    const frozen = await servedBy(zk)
    frozen.pause()
    const error = await failsWith('CONNECTION_LOSS', zk.setData(path, 'lost'))
    expect(error.maybeDone).toBe(true)
    // Another server answers, and knows the session.
    const { stat } = await answered(() => zk.exists(path))
    expect(stat?.ephemeralOwner).toBe(session?.id)
    expect(zk.session).toEqual(session)
    await answered(() => zk.setData(path, 'now'))
    await eventually('the watch that was set again', () => events.length === 1)
    expect(events).toEqual(['changed'])
    expect(zk.heard.slice(0, 3)).toEqual(['connected', 'suspected', 'reconnected'])
    expect(zk.heard).not.toContain('expired')
    expect(await servedBy(zk)).not.toBe(frozen)
  })

  it('leaves a frozen server though nobody asks for anything', async () => {
    const zk = await connectedTo('follower', 8000)
    const frozen = await servedBy(zk)
    frozen.pause()
    await zk.hears('reconnected')
    // Within the session: otherwise it would have expired.
    expect(zk.heard).toEqual(['connected', 'suspected', 'reconnected'])
  })

  it.each(['follower', 'leader'] as const)('goes on when the %s is killed', async (which) => {
    const zk = await connectedTo(which, 10_000)
    const { path } = await zk.create('/killed-', { mode: 'ephemeralSequential' })
    const killed = await servedBy(zk)
    await killed.kill()
    const { stat } = await answered(() => zk.exists(path))
    expect(stat?.ephemeralOwner).toBe(zk.session?.id)
    await answered(() => zk.setData(path, 'on'))
    expect(zk.heard).not.toContain('expired')
  })

  it('leaves a follower whose writes do not reach the leader', async () => {
    for (;;) {
      const zk = await connectedTo('follower', 8000)
      // A path of its own each time: the last one may be there until its session is over.
      const { path } = await zk.create('/cut-off-', { mode: 'ephemeralSequential' })
      leader.pause()
      const outcome = await settled(zk.setData(path, '1'))
      if ('error' in outcome) {
        expect(outcome.error).toMatchObject({ code: 'CONNECTION_LOSS', maybeDone: true })
        await answered(() => zk.sync())
        return expect(zk.heard).not.toContain('expired')
      }
      // It was not the leader any more: they elect another one when the machine has stood still.
      leader.resume()
      await zk.close()
      leader = await ensemble.leader()
    }
  })

  it('waits for its requests’ time when there is no majority', async () => {
    const zk = await connectedTo('leader', 10_000)
    const followers = ensemble.members.filter((member) => member !== leader)
    for (const follower of followers) await follower.kill()
    const outcome = zk.create('/no-majority', { timeout: 1500 })
    await outcome.then(
      () => expect.fail('created without a majority'),
      (error) => expect(['CONNECTION_LOSS', 'REQUEST_TIMEOUT']).toContain(error.code),
    )
    for (const follower of followers) await follower.start()
    await answered(() => zk.exists('/no-majority'))
  })
})
