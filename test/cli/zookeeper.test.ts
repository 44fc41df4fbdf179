import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'
import { Bench } from './processes.js'
import { findRisk, sellAll, testCommands } from './store-cases.js'

describeOn('zookeeper', 'a store that is named zookeeper://', () => {
  let ensemble: ZooKeeperEnsemble
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  })
  afterAll(() => ensemble?.stop())

  // Short where somebody waits for the end of a session; elsewhere none ends because the machine stands still.
  const url = (session = '15s'): string =>
    `zookeeper://${ensemble.address}?sessionTimeout=${session}&tick=200ms`

  testCommands(url)

  it('holdfast doctor: what is fine comes after what is not', () =>
    findRisk(
      url(),
      /^LEVEL +ABOUT +FINDING\nrisk +access +Anyone who reaches the servers/,
      /\nfine +ensemble +3 servers vote/,
    ))

  it('the demonstration runs on it', { timeout: 90_000 }, async () => {
    await sellAll(url('4s'))
    const { stdout } = await new Bench().holdfast(['ls', '--json', '--store', url()]).done
    expect(JSON.parse(stdout)).toEqual([])
  })

  it('says what is wrong with a URL', async () => {
    const bench = new Bench()
    const wrong = bench.holdfast(['run', 'x', '--store', `${url()}&sesionTimeout=1s`, '--', 'true'])
    expect(await wrong.done).toMatchObject({ code: 64, stderr: expect.stringContaining('sessionTimeout') })
    const none = bench.holdfast(['run', 'x', '--store', 'zookeeper:', '--', 'true'])
    expect(await none.done).toMatchObject({ code: 64, stderr: expect.stringContaining('host:port') })
  })
})
