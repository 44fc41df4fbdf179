import { expect, it } from 'vitest'
import { Pages } from '../../../src/server/ui/pages.js'

function numbers(total: number) {
  const loads: number[] = []
  let times = 0
  const load = async (offset: number, limit: number) => {
    loads.push(offset)
    const length = Math.max(0, Math.min(limit, total - offset))
    return { total, items: Array.from({ length }, (_, at) => `${offset + at}/${times}`) }
  }
  let changes = 0
  const pages = new Pages<string>(10, load, () => changes++)
  const next = (less = 0): void => {
    times++
    total -= less
  }
  return { pages, loads, next, changes: () => changes }
}

it('loads the pages in sight once, and keeps them until the new ones are here', async () => {
  const { pages, loads, next, changes } = numbers(35)
  await Promise.all([pages.ensure(5, 12), pages.ensure(8, 9)])
  expect([loads, pages.total, pages.at(12), pages.at(20), changes()]).toEqual([
    [0, 10],
    35,
    '12/0',
    undefined,
    2,
  ])
  await pages.ensure(30, 40)
  expect([loads, pages.at(34)]).toEqual([[0, 10, 30, 40], '34/0'])

  next()
  const refreshed = pages.refresh(10, 19)
  expect(pages.at(12)).toBe('12/0')
  await refreshed
  expect([pages.at(12), pages.at(5), loads.at(-1)]).toEqual(['12/1', '5/0', 10])
  await pages.ensure(0, 9)
  expect(pages.at(5)).toBe('5/1')
})

it('forgets rows beyond the end, changes rows in place, and takes rows from events', async () => {
  const { pages, next } = numbers(25)
  await pages.ensure(0, 24)
  next(20)
  await pages.refresh(0, 9)
  expect([pages.total, pages.at(4), pages.at(5), pages.at(20)]).toEqual([5, '4/1', undefined, undefined])
  pages.replace((row) => (row === '4/1' ? 'changed' : row))
  expect([pages.at(4), pages.at(3)]).toEqual(['changed', '3/1'])
  pages.put(0, 2, ['a', 'b'])
  expect([pages.total, pages.at(0), pages.at(1), pages.at(2)]).toEqual([2, 'a', 'b', undefined])
})

it('takes nothing after its end, and asks again for what failed', async () => {
  let fails = true
  const pages = new Pages<string>(
    10,
    async () => {
      if (fails) throw new Error('down')
      return { total: 1, items: ['a'] }
    },
    () => {},
  )
  await expect(pages.ensure(0, 0)).rejects.toThrow('down')
  fails = false
  await pages.ensure(0, 0)
  expect(pages.at(0)).toBe('a')
  const late = pages.refresh(0, 0)
  pages.end()
  pages.put(0, 1, ['b'])
  await late
  expect(pages.at(0)).toBe('b')
})
