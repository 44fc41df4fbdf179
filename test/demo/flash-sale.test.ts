import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench, isRunning, until } from '../cli/processes.js'

const DEMO = 'demo/flash-sale/main.mjs'

test('it oversells without the lock, sells exactly 100 with it, and the stale write is refused', async () => {
  const bench = new Bench()
  const { code, stdout, stderr } = await bench.node([DEMO]).done
  expect(stderr).toBe('')
  const oversold = Number(/Sold \d+ of 100: oversold by (\d+)\./.exec(stdout)?.[1])
  expect(oversold).toBeGreaterThan(0)
  expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
  const fenceOf = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1])
  const staleFence = fenceOf(/A holds the lock with fence (\d+)/)
  expect(fenceOf(/B gets the lock .*with fence (\d+)/)).toBeGreaterThan(staleFence)
  expect(stdout).toMatch(/A goes on after \d+ ms; its hold\.isValid is false\./)
  expect(stdout).toContain(`A writes all the same, with fence ${staleFence}: refused.`)
  expect(stdout).not.toMatch(/WRONG|\r/)
  expect(code).toBe(0)
  expect(readdirSync(bench.folder)).toEqual([])
}, 120_000)

test('--store runs it on another store, which stays', async () => {
  const bench = new Bench()
  const { code, stdout } = await bench.node([DEMO, '--store', bench.store]).done
  expect(stdout).toContain(bench.store)
  expect(code).toBe(0)
  expect(await bench.lines()).toEqual([])
  expect(readdirSync(bench.folder).filter((name) => name.startsWith('holdfast-demo'))).toEqual([])
}, 120_000)

test('a store that cannot be opened: it says so, ends with 1 and leaves nothing behind', async () => {
  const bench = new Bench()
  const { code, stdout, stderr } = await bench.node([DEMO, '--store', 'nosuch:x']).done
  expect(code).toBe(1)
  expect(stdout + stderr).toContain('nosuch:x')
  expect(readdirSync(bench.folder)).toEqual([])
}, 120_000)

test('--help, and what it does not know', async () => {
  const bench = new Bench()
  expect(await bench.node([DEMO, '--help']).done).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('--store'),
  })
  expect((await bench.node([DEMO, '--frob']).done).code).toBe(64)
  expect((await bench.node([DEMO, '--store', 'memory:']).done).code).toBe(64)
})

test.runIf(process.platform === 'linux')(
  'Ctrl-C leaves no process and no file behind',
  async () => {
    const bench = new Bench()
    const demo = bench.node([DEMO])
    const workers = await until('four workers', () => {
      const children = childrenOf(demo.pid)
      return children.length === 4 ? children : null
    })
    demo.kill('SIGINT')
    expect((await demo.done).code).toBe(130)
    await until('the workers have gone', () => !workers.some(isRunning))
    expect(readdirSync(bench.folder)).toEqual([])
  },
  120_000,
)

test.runIf(process.platform === 'linux')(
  'killed with SIGKILL, its workers end by themselves',
  async () => {
    const bench = new Bench()
    const demo = bench.node([DEMO])
    const workers = await until('four workers', () => {
      const children = childrenOf(demo.pid)
      return children.length === 4 ? children : null
    })
    demo.kill('SIGKILL')
    await until('the workers have gone', () => !workers.some(isRunning))
  },
  120_000,
)

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}
