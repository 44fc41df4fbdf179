import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { Bench, type ListedResource, until } from './processes.js'

describeOn('etcd', 'a store that is named etcd://', () => {
  let server: EtcdServer
  beforeAll(async () => {
    server = await startEtcd()
  })
  afterAll(() => server?.stop())
  const url = (): string => `${server.url}?ttl=20s`

  it('holdfast run: one after the other, with fences that rise, and a listing meanwhile', async () => {
    const bench = new Bench()
    const run = (script: string) =>
      bench.holdfast(['run', 'deploy', '--store', url(), '--', '/bin/sh', '-c', script])
    const first = run('echo $HOLDFAST_FENCE; read line')
    const [, fence] = await first.wrote(/(\d+)\n/)
    const second = run('echo $HOLDFAST_FENCE')
    const listed = await until('the second one in line', async () => {
      const { stdout } = await bench.holdfast(['ls', '--json', '--store', url()]).done
      const [line] = JSON.parse(stdout) as ListedResource[]
      return line?.waiters.length === 1 && line
    })
    expect(listed.holders.map((holder) => holder.fence)).toEqual([Number(fence)])
    const tried = await bench.holdfast(['run', 'deploy', '--try', '--store', url(), '--', 'true']).done
    expect(tried.code).toBe(75)
    expect(second.stdout).toBe('')
    first.type('\n')
    expect((await first.done).code).toBe(0)
    const outcome = await second.done
    expect(outcome.code).toBe(0)
    expect(Number(outcome.stdout)).toBeGreaterThan(Number(fence))
    expect((await bench.holdfast(['ls', '--json', '--store', url()]).done).stdout.trim()).toBe('[]')
  })

  it('holdfast break: the command that holds is ended', async () => {
    const bench = new Bench()
    const script = ['/bin/sh', '-c', 'echo runs; sleep 600']
    const holder = bench.holdfast(['run', 'stuck', '--store', url(), '--', ...script])
    await holder.wrote(/runs/)
    const { code, stdout } = await bench.holdfast(['break', 'stuck', '--store', url()]).done
    expect(stdout).toContain('stuck')
    expect(code).toBe(0)
    expect((await holder.done).code).toBe(76)
  })

  it('holdfast doctor: what is fine comes after what is not', async () => {
    const { code, stdout } = await new Bench().holdfast(['doctor', '--store', url()]).done
    expect(stdout).toMatch(/^LEVEL +ABOUT +FINDING\nrisk +cluster +One server by itself/)
    expect(stdout).toMatch(/\nfine +permissions/)
    // A risk is no fault, unless one asks for it.
    expect(code).toBe(0)
    expect((await new Bench().holdfast(['doctor', '--strict', '--store', url()]).done).code).toBe(1)
  })

  it('says what is wrong with a URL', async () => {
    const bench = new Bench()
    const wrong = bench.holdfast(['run', 'x', '--store', `${url()}&requestTimout=1s`, '--', 'true'])
    expect(await wrong.done).toMatchObject({ code: 64, stderr: expect.stringContaining('requestTimeout') })
    const none = bench.holdfast(['run', 'x', '--store', 'etcd:', '--', 'true'])
    expect(await none.done).toMatchObject({ code: 64, stderr: expect.stringContaining('host1:2379') })
  })
})
