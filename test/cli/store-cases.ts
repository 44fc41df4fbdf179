import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Bench, type ListedResource, until } from './processes.js'

/** What `holdfast` does on every store. The URL is asked for when a test runs. */
export function testCommands(url: () => string): void {
  const store = (): string[] => ['--store', url()]

  it('holdfast run and ls: one after the other, with fences that rise', async () => {
    const bench = new Bench()
    const list = async (): Promise<ListedResource[]> =>
      JSON.parse((await bench.holdfast(['ls', '--json', ...store()]).done).stdout)
    const first = bench.script('deploy', store(), 'echo $HOLDFAST_FENCE; read line')
    const [, fence] = await first.wrote(/(\d+)\n/)
    const second = bench.script('deploy', store(), 'echo $HOLDFAST_FENCE')
    const listed = await until('the second one in line', async () => {
      const [line] = await list()
      return line?.waiters.length === 1 && line
    })
    expect(listed.holders.map((holder) => holder.fence)).toEqual([Number(fence)])
    const tried = await bench.holdfast(['run', 'deploy', '--try', ...store(), '--', 'true']).done
    expect(tried.code).toBe(75)
    expect(second.stdout).toBe('')
    first.type('\n')
    expect((await first.done).code).toBe(0)
    const outcome = await second.done
    expect(outcome.code).toBe(0)
    expect(Number(outcome.stdout)).toBeGreaterThan(Number(fence))
    expect(await list()).toEqual([])
  })

  it('holdfast break: the command of the broken hold is ended', async () => {
    const bench = new Bench()
    const broken = bench.script('stuck', store(), 'echo runs; sleep 600')
    await broken.wrote(/runs/)
    const { code, stdout } = await bench.holdfast(['break', 'stuck', ...store()]).done
    expect(stdout).toContain('stuck')
    expect(code).toBe(0)
    expect((await broken.done).code).toBe(76)
  })
}

/**
 * Commands on all URLs count together. Then `holdfast ls` shows the holder, and `holdfast doctor`
 * has the finding.
 */
export async function countListAndCheck(urls: readonly string[], finding: RegExp): Promise<void> {
  const bench = new Bench()
  const counter = bench.path('counter')
  writeFileSync(counter, '0\n')
  // The pause lets those in that are not kept out.
  const script = `read value <${counter}; sleep 0.01; echo $((value + 1)) >${counter}`
  const runs = urls.flatMap((url) =>
    [1, 2, 3].map(() => bench.script('counter', ['--store', url], script).done),
  )
  const outcomes = await Promise.all(runs)
  expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual(runs.map(() => [0, '']))
  expect(readFileSync(counter, 'utf8')).toBe(`${runs.length}\n`)
  const store = ['--store', urls[0] ?? '']
  const holder = bench.script('held', store, 'echo inside; read line')
  await holder.wrote(/inside/)
  expect((await bench.holdfast(['ls', ...store]).done).stdout).toMatch(/held/)
  holder.end()
  // Of `read`, at the end of its input.
  expect((await holder.done).code).toBe(1)
  const { code, stdout } = await bench.holdfast(['doctor', ...store]).done
  expect(stdout).toMatch(finding)
  expect(code).toBe(0)
}

/** The flash sale of the demonstration, to its end. */
export async function sellAll(url: string): Promise<void> {
  const { code, stdout } = await new Bench().node(['demo/flash-sale/main.mjs', '--store', url]).done
  expect(stdout).toContain(url)
  expect(stdout).toContain('Sold 100 of 100. Fences strictly increasing.')
  expect(stdout).toMatch(/A writes all the same, with fence \d+: refused\./)
  expect(stdout).not.toContain('WRONG')
  expect(code).toBe(0)
}

/**
 * `holdfast doctor` names a risk, and then what is fine. A risk is a failure only with `--strict`.
 */
export async function findRisk(url: string, risk: RegExp, fine: RegExp): Promise<void> {
  const { code, stdout } = await new Bench().holdfast(['doctor', '--store', url]).done
  expect(stdout).toMatch(risk)
  expect(stdout).toMatch(fine)
  expect(code).toBe(0)
  expect((await new Bench().holdfast(['doctor', '--strict', '--store', url]).done).code).toBe(1)
}
