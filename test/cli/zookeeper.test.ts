import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'
import { Bench, type ListedResource, until } from './processes.js'

describeOn('zookeeper', 'a store that is named zookeeper://', () => {
  let ensemble: ZooKeeperEnsemble
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  })
  afterAll(() => ensemble?.stop())

  // Short where somebody waits for the end of a session; elsewhere none ends because the machine stands still.
  const url = (session = '15s'): string =>
    `zookeeper://${ensemble.address}?sessionTimeout=${session}&tick=200ms`

  it('holdfast run: one after the other, with fences that rise', async () => {
    const bench = new Bench()
    const run = (name: string, script: string) =>
      bench.holdfast(['run', name, '--store', url(), '--', '/bin/sh', '-c', script])
    const first = run('deploy', 'echo $HOLDFAST_FENCE; read line')
    const [, fence] = await first.wrote(/(\d+)\n/)
    const second = run('deploy', 'echo $HOLDFAST_FENCE')
    const listed = await until('the second one in line', async () => {
      const { stdout } = await bench.holdfast(['ls', '--json', '--store', url()]).done
      const [line] = JSON.parse(stdout) as ListedResource[]
      return line?.waiters.length === 1 && line
    })
    expect(listed.holders.map((holder) => holder.fence)).toEqual([Number(fence)])
    expect((await bench.holdfast(['run', 'deploy', '--try', '--store', url(), '--', 'true']).done).code).toBe(
      75,
    )
    expect(second.stdout).toBe('')
    first.type('\n')
    expect((await first.done).code).toBe(0)
    const outcome = await second.done
    expect(outcome.code).toBe(0)
    expect(Number(outcome.stdout)).toBeGreaterThan(Number(fence))
  })

  it('holdfast break: the robbed command is ended', async () => {
    const bench = new Bench()
    const robbed = bench.holdfast([
      'run',
      'stuck',
      '--store',
      url(),
      '--',
      'sh',
      '-c',
      'echo runs; sleep 600',
    ])
    await robbed.wrote(/runs/)
    const { code, stdout } = await bench.holdfast(['break', 'stuck', '--store', url()]).done
    expect(stdout).toContain('stuck')
    expect(code).toBe(0)
    expect((await robbed.done).code).toBe(76)
  })

  it('holdfast doctor: what is fine comes after what is not', async () => {
    const { code, stdout } = await new Bench().holdfast(['doctor', '--store', url()]).done
    expect(stdout).toMatch(/^LEVEL +ABOUT +FINDING\nrisk +access +Anyone who reaches the servers/)
    expect(stdout).toMatch(/\nfine +ensemble +3 servers vote/)
    // A risk is no fault, unless one asks for it.
    expect(code).toBe(0)
    expect((await new Bench().holdfast(['doctor', '--strict', '--store', url()]).done).code).toBe(1)
  })

  it('the demonstration runs on it', { timeout: 90_000 }, async () => {
    const bench = new Bench()
    const { code, stdout } = await bench.node(['demo/flash-sale/main.mjs', '--store', url('4s')]).done
    expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
    expect(stdout).not.toContain('WRONG')
    expect(code).toBe(0)
    const { stdout: listed } = await bench.holdfast(['ls', '--json', '--store', url()]).done
    expect(JSON.parse(listed)).toEqual([])
  })

  it('says what is wrong with a URL', async () => {
    const bench = new Bench()
    const wrong = bench.holdfast(['run', 'x', '--store', `${url()}&sesionTimeout=1s`, '--', 'true'])
    expect(await wrong.done).toMatchObject({ code: 64, stderr: expect.stringContaining('sessionTimeout') })
    const none = bench.holdfast(['run', 'x', '--store', 'zookeeper:', '--', 'true'])
    expect(await none.done).toMatchObject({ code: 64, stderr: expect.stringContaining('host:port') })
  })
})
