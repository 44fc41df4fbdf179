import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { Bench } from './processes.js'
import { findRisk, testCommands } from './store-cases.js'

describeOn('etcd', 'a store that is named etcd://', () => {
  let server: EtcdServer
  beforeAll(async () => {
    server = await startEtcd()
  })
  afterAll(() => server?.stop())
  const url = (): string => `${server.url}?ttl=20s`

  testCommands(url)

  it('holdfast doctor: what is fine comes after what is not', () =>
    findRisk(url(), /^LEVEL +ABOUT +FINDING\nrisk +cluster +One server by itself/, /\nfine +permissions/))

  it('says what is wrong with a URL', async () => {
    const bench = new Bench()
    const wrong = bench.holdfast(['run', 'x', '--store', `${url()}&requestTimout=1s`, '--', 'true'])
    expect(await wrong.done).toMatchObject({ code: 64, stderr: expect.stringContaining('requestTimeout') })
    const none = bench.holdfast(['run', 'x', '--store', 'etcd:', '--', 'true'])
    expect(await none.done).toMatchObject({ code: 64, stderr: expect.stringContaining('host1:2379') })
  })
})
