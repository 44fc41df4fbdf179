import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../src/stores/memory/index.js'
import { describeOn } from '../../servers/availability.js'
import { PATIENCE_MS, until, visit, withChromium } from './browser.js'
import { Claims } from './claims.js'
import { World } from './world.js'

const MANY = 10_000

/** Remembers how long the page did not answer at a stretch. */
const WATCH_TASKS = `window.longestTask = 0
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longestTask = Math.max(window.longestTask, duration)
}).observe({ entryTypes: ['longtask'] })`

describeOn('chromium', `${MANY} of them`, () => {
  withChromium()

  it('resources', async () => {
    const world = new World(memory())
    onTestFinished(() => world.close())
    const claims = new Claims(world.store, world.space)
    for (let index = 0; index < MANY; index++) await claims.add(`resource:${String(index).padStart(5, '0')}`)
    const { page, complaints } = await visit(`${await world.serve()}#/?sort=name`)
    await page.getByText('10,000 in all').waitFor()
    await page.getByRole('link', { name: 'resource:00000' }).waitFor()
    await page.evaluate(WATCH_TASKS)
    const jumpMs = await jump(page, 'resource:05', 0.5)
    const rows = await page.locator('.resource-row').count()
    await page.getByRole('searchbox').fill('resource:0777')
    await page.getByText('10 found').waitFor()
    await claims.add('resource:07777')
    await until(page, "/^1/.test(document.querySelectorAll('.behind')[7]?.innerText ?? '')")
    report('resources', { jumpMs, rows, task: await longestTask(page) })
    expect(rows).toBeLessThan(120)
    expect(complaints).toEqual([])
  })

  it('waiters in one line', async () => {
    const world = new World(memory())
    onTestFinished(() => world.close())
    const claims = new Claims(world.store, world.space)
    for (let index = 0; index <= MANY; index++)
      await claims.add('hot', { host: `host-${String(index).padStart(5, '0')}` })
    const { page, complaints } = await visit(`${await world.serve()}#/r/hot`)
    await page.getByText('1 holder, 10,000 waiters').waitFor()
    await page.evaluate(WATCH_TASKS)
    const jumpMs = await jump(page, 'host-05', 0.5)
    const rows = await page.locator('.waiter-row').count()
    await jump(page, 'host-10000', 1)
    await claims.release('hot', 'claim-1')
    await page.getByText('1 holder, 9,999 waiters').waitFor()
    report('waiters', { jumpMs, rows, task: await longestTask(page) })
    expect(rows).toBeLessThan(120)
    expect(complaints).toEqual([])
  })
})

/** Scrolls there at once; how long until the rows of that place are there. */
async function jump(page: Page, text: string, part: number): Promise<number> {
  const ms = await page.evaluate<number>(`new Promise((resolve, reject) => {
    const began = performance.now()
    scrollTo(0, document.documentElement.scrollHeight * ${part})
    const look = () => {
      const passedMs = performance.now() - began
      const isThere = [...document.querySelectorAll('.virtual .text')].some((each) => each.innerText.startsWith('${text}'))
      if (isThere) resolve(passedMs)
      else if (passedMs > ${PATIENCE_MS}) reject(new Error('No row ${text} appears'))
      else requestAnimationFrame(look)
    }
    look()
  })`)
  return Math.round(ms)
}

async function longestTask(page: Page): Promise<number> {
  return Math.round(await page.evaluate<number>('window.longestTask'))
}

function report(what: string, figures: { jumpMs: number; rows: number; task: number }): void {
  const { jumpMs, rows, task } = figures
  console.log(
    `${MANY} ${what}: rows after a jump in ${jumpMs} ms, longest task ${task} ms, ${rows} rows drawn`,
  )
}
