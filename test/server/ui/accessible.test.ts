import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../src/stores/memory/index.js'
import { describeOn } from '../../servers/availability.js'
import { expectNoSideways, PHONE, visit, withChromium } from './browser.js'
import { contend, World } from './world.js'

const WIDE = { viewport: { width: 1280, height: 800 } }

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly target: unknown; readonly failureSummary: string }[]
}

/** Runs axe in the page: all of its rules, also the contrast. */
async function expectAccessible(page: Page, view: string): Promise<void> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    "axe.run(document, { resultTypes: ['violations'] })",
  )
  const serious = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${view}: ${id}: ${nodes[0]?.target}: ${nodes[0]?.failureSummary}`)
  expect(serious).toEqual([])
}

async function worldServed(): Promise<string> {
  const world = new World(memory())
  onTestFinished(() => world.close())
  await contend(world)
  return world.serve()
}

describeOn('chromium', 'for everybody', () => {
  withChromium()

  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    it.each([
      { width: 'on a desktop', options: WIDE, isChecked: () => true },
      // The same elements in other places: two views are enough.
      {
        width: 'on a phone of 360 px',
        options: PHONE,
        isChecked: (hash: string) => /^#\/(r\/order.*)?$/.test(hash),
      },
    ])('every view $width', async ({ options, isChecked }) => {
      const url = await worldServed()
      const { page, complaints } = await visit(url, { ...options, colorScheme })
      const look = async (hash: string, awaited: string): Promise<void> => {
        await page.goto(url + hash)
        await page.locator(awaited).first().waitFor()
        if (isChecked(hash)) await expectAccessible(page, hash)
        await expectNoSideways(page)
      }
      await look('#/', '[data-row="4"]')
      await look('#/?host=nobody', '.empty')
      await look('#/r/order%3A42', '.waiter-row .act')
      await page.getByText('As text').click()
      await page.getByRole('button', { name: /^Break the hold/ }).click()
      await expectAccessible(page, 'dialog')
      await page.keyboard.press('Escape')
      await look('#/r/catalogue', '.tile.reader')
      await look('#/r/gpu', '.permits.large')
      await look('#/standing', '.cards')
      await look('#/doctor', '.findings li, .empty')
      await look('#/audit', '.empty')
      expect(complaints).toEqual([])
    })
  })

  it('the colours can be chosen, and are kept', async () => {
    const { page } = await visit(await worldServed(), { colorScheme: 'light' })
    const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await ground()
    await page.getByRole('button', { name: 'Colours: system' }).click()
    expect(await ground()).toBe(light)
    await page.getByRole('button', { name: 'Colours: light' }).click()
    const dark = await ground()
    expect(dark).not.toBe(light)
    await page.reload()
    await page.getByRole('button', { name: 'Colours: dark' }).waitFor()
    expect(await ground()).toBe(dark)
  })
})
