import { expect, test } from 'vitest'
import { Bench, type Running, until } from './processes.js'

interface Event {
  readonly event: string
  readonly pid: number
  readonly id: string
  readonly fence?: number
  readonly afterMs: number | null
  readonly label: string
}

function eventsOf(watch: Running): Event[] {
  return watch.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Event)
}

/** Resolves with the first event of that type about that process. */
function happened(watch: Running, event: string, pid: number): Promise<Event> {
  return until(`${event} of ${pid} in ${watch.stdout}`, () =>
    eventsOf(watch).find((each) => each.event === event && each.pid === pid),
  )
}

test('watch --json tells what happens in a line, in order', async () => {
  const bench = new Bench()
  const first = bench.script('door', ['--label', 'one'], 'echo inside; read end')
  await first.wrote(/inside/)
  const watch = bench.holdfast(['watch', 'door', '--json'])
  expect(await happened(watch, 'holds', first.pid)).toMatchObject({ label: 'one', fence: expect.any(Number) })
  const second = bench.script('door', [], 'echo inside; read end')
  const { id } = await happened(watch, 'waiting', second.pid)
  const third = bench.script('door', ['--wait', '5s'], 'exit 0')
  await happened(watch, 'waiting', third.pid)
  await happened(watch, 'left', third.pid)
  first.type('\n')
  const released = await happened(watch, 'released', first.pid)
  expect(released.afterMs).toBeGreaterThan(0)
  const granted = await happened(watch, 'granted', second.pid)
  expect(granted).toMatchObject({ id, afterMs: expect.any(Number) })
  expect(granted.fence).toBeGreaterThan(released.fence ?? Infinity)
  second.type('\n')
  await happened(watch, 'released', second.pid)
  watch.kill('SIGINT')
  expect((await watch.done).code).toBe(130)
  // Another name, with the same beginning, is not watched.
  expect(eventsOf(watch).map(({ event, pid }) => [event, pid])).toEqual([
    ['holds', first.pid],
    ['waiting', second.pid],
    ['waiting', third.pid],
    ['left', third.pid],
    ['released', first.pid],
    ['granted', second.pid],
    ['released', second.pid],
  ])
})

test('watch says expired of a hold whose process was killed, and sees only its own name', async () => {
  const bench = new Bench()
  const neighbour = bench.script('door2', [], 'echo inside; read end')
  await neighbour.wrote(/inside/)
  const holder = bench.script('door', ['--lease', '1s'], 'echo inside; sleep 60')
  await holder.wrote(/inside/)
  const watch = bench.holdfast(['watch', 'door', '--json'])
  await happened(watch, 'holds', holder.pid)
  holder.kill('SIGKILL')
  await happened(watch, 'expired', holder.pid)
  watch.kill('SIGTERM')
  expect((await watch.done).code).toBe(143)
  expect(eventsOf(watch)).toHaveLength(2)
})

test('watch writes a line for each event, and no control characters of others', async () => {
  const bench = new Bench()
  const holder = bench.script('a\u001b[2J', ['--label', 'x\ny\u009b'], 'echo inside; read end')
  await holder.wrote(/inside/)
  const watch = bench.holdfast(['watch', 'a\u001b[2J'])
  await watch.wrote(/ {2}holds .*\n/)
  const json = bench.holdfast(['watch', 'a\u001b[2J', '--json'])
  await happened(json, 'holds', holder.pid)
  holder.type('\n')
  await watch.wrote(/ {2}released /)
  for (const each of [watch, json]) each.kill('SIGINT')
  await Promise.all([watch.done, json.done])
  expect(watch.stdout).toMatch(/^[\x20-\x7e\n]*$/)
  expect(json.stdout).toMatch(/^[\x20-\x7e\n]*$/)
  expect(watch.stdout.trimEnd().split('\n')).toHaveLength(2)
  expect(watch.stdout).toContain('x\\u000ay\\u009b')
  expect(eventsOf(json)[0]?.label).toBe('x\ny\u009b')
})

test('break --waiter takes a waiter out of the line, whose command is not started', async () => {
  const bench = new Bench()
  const holder = bench.script('door', [], 'echo inside; read end')
  await holder.wrote(/inside/)
  const waiter = bench.script('door', ['--label', 'stuck'], 'echo started')
  const id = await until('a waiter', async () => {
    const [line] = JSON.parse((await bench.holdfast(['ls', '--json']).done).stdout) as {
      waiters: { id: string }[]
    }[]
    return line?.waiters[0]?.id
  })
  expect((await bench.holdfast(['break', 'door', '--waiter', id, '--fence', '1']).done).code).toBe(64)
  const hit = await bench.holdfast(['break', 'door', '--waiter', id]).done
  expect(hit.code).toBe(0)
  expect(hit.stdout).toMatch(/^Cancelled a waiter of 'door': .*, stuck\), waiting since .*Z\.\n$/)
  expect(await waiter.done).toMatchObject({ code: 75, stdout: '' })
  expect(waiter.stderr).toContain('cancelled by an operator')
  const missed = await bench.holdfast(['break', 'door', '--waiter', id]).done
  expect(missed).toMatchObject({
    code: 1,
    stdout: `No waiter with the id ${id} is in the line of 'door': nothing to cancel.\n`,
  })
  holder.type('\n')
  expect((await holder.done).code).toBe(0)
})
