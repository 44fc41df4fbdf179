import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../src/stores/memory/index.js'
import { describeOn } from '../../servers/availability.js'
import { until, visit, withChromium } from './browser.js'
import { contend, World } from './world.js'

const focused = (page: Page): Promise<string> =>
  page.evaluate(
    "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText).trim()",
  )

/** The mark of the focus: an outline on the element, or on the row that its link fills. */
const HAS_OUTLINE = `[undefined, '::after'].some((part) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement, part)
  return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2
})`

describeOn('chromium', 'the keyboard alone', () => {
  withChromium()

  it('finds a lock, breaks its hold, and comes back', async () => {
    const world = new World(memory())
    onTestFinished(() => world.close())
    const { orderHold } = await contend(world)
    const { page, complaints } = await visit(await world.serve())
    const { keyboard } = page
    await page.getByRole('link', { name: 'order:42' }).waitFor()

    await keyboard.press('/')
    await expect.poll(() => focused(page)).toBe('Search by name')
    await keyboard.type('or')
    await page.getByText('found').waitFor()
    await keyboard.press('Escape')
    await page.getByText('5 in all').waitFor()
    await keyboard.press('ArrowDown')
    await expect.poll(() => focused(page)).toBe('order:42')
    await until(page, HAS_OUTLINE)
    await keyboard.press('ArrowDown')
    await expect.poll(() => focused(page)).toBe('catalogue')
    await keyboard.press('End')
    await until(page, "document.activeElement.dataset.row === '4'")
    await keyboard.press('Home')
    await until(page, "document.activeElement.dataset.row === '0'")
    await keyboard.press('ArrowUp')
    await until(page, 'document.activeElement.dataset.row === undefined')
    await expect.poll(() => focused(page)).toBe('Search by name')
    await keyboard.press('ArrowDown')
    await keyboard.press('Enter')
    await page.getByText('1 holder, 3 waiters').waitFor()

    await tabTo(page, /^Break the hold of api-1/)
    await until(page, HAS_OUTLINE)
    await keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Break this hold?' }).waitFor()
    // The harmless answer has the focus, and Tab stays inside.
    await expect.poll(() => focused(page)).toBe('Leave it')
    for (let count = 0; count < 6; count++) {
      await keyboard.press('Tab')
      await until(
        page,
        "document.activeElement === document.body || !!document.activeElement.closest('dialog')",
      )
    }
    await keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => focused(page)).toMatch(/^Break the hold of api-1/)
    expect(orderHold.signal.aborted).toBe(false)

    await keyboard.press('Enter')
    await tabTo(page, /^Break the hold$/)
    await keyboard.press('Enter')
    await page.getByText('The hold is broken.').waitFor()
    expect(orderHold.signal.aborted).toBe(true)
    await keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await keyboard.press('Escape')
    await page.getByText('5 in all').waitFor()
    expect(complaints).toEqual([])
  })
})

async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let count = 0; count < 40; count++) {
    if (name.test(await focused(page))) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not lead to ${name}`)
}
