import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve } from '../../site/serve.mjs'
import { root } from '../project/sources.js'
import { expectNoSideways, PHONE, visit, withChromium } from '../server/ui/browser.js'
import { describeOn } from '../servers/availability.js'

/** Set by scripts/test-docs.mjs, which builds the site before. */
const isBuilt = process.env['HOLDFAST_TEST_DOCS'] === 'built'

describe.runIf(isBuilt)('the built site (npm run test:docs)', () => {
  describeOn('chromium', 'in a browser', () => {
    withChromium()
    let site: Awaited<ReturnType<typeof serve>>
    beforeAll(async () => {
      site = await serve(join(root, '.cache/site'))
    })
    afterAll(() => site.close())

    /** Fails the test if the page complains, or asks another host for something. */
    async function look(path: string, options: BrowserContextOptions, use: (page: Page) => Promise<void>) {
      const { page, complaints } = await visit('about:blank', options)
      const requests: string[] = []
      page.on('request', (request) => requests.push(request.url()))
      page.on('response', (response) => {
        if (response.status() >= 400) complaints.push(`${response.url()}: ${response.status()}`)
      })
      await page.goto(`${site.url}${path}`)
      await use(page)
      expect(requests.filter((url) => !url.startsWith(site.url) && !url.startsWith('data:'))).toEqual([])
      expect(complaints).toEqual([])
    }

    async function picturesLoaded(page: Page): Promise<void> {
      const areLoaded = '[...document.querySelectorAll(".runs img")].map((each) => each.naturalWidth > 0)'
      await expect.poll(() => page.evaluate(areLoaded)).toEqual([true, true, true])
    }

    it.each(['light', 'dark'] as const)(
      'the first page shows the code and three pictures, %s',
      (colorScheme) =>
        look('/', { colorScheme }, async (page) => {
          await page.getByRole('heading', { name: 'A working lock in a minute' }).waitFor()
          await page.getByText('npm install holdfast').first().waitFor()
          await picturesLoaded(page)
        }),
    )

    it('nothing is wider than a phone', () =>
      look('/', PHONE, async (page) => {
        await expectNoSideways(page)
        await page.goto(`${site.url}/docs/guides/comparison.html`)
        await expectNoSideways(page)
        await page.goto(`${site.url}/reference/holdfast.html`)
        await expectNoSideways(page)
      }))

    it('the search finds a page, without a service', () =>
      look('/', {}, async (page) => {
        const input = page.locator('.VPLocalSearchBox input')
        // The page may not listen yet.
        await expect
          .poll(async () => {
            await page.keyboard.press('Control+k')
            return input.isVisible()
          })
          .toBe(true)
        await input.fill('stale fence')
        const results = page.locator('.VPLocalSearchBox .result')
        await results.first().waitFor()
        const targets = await Promise.all((await results.all()).map((each) => each.getAttribute('href')))
        expect(targets).toContainEqual(expect.stringContaining('/docs/fencing.html'))
      }))

    it('dark mode can be chosen, and the pictures follow', () =>
      look('/', { colorScheme: 'light' }, async (page) => {
        const picture = page.locator('.runs img').first()
        await picturesLoaded(page)
        // The corners of a picture show what is behind it, and that must not make the difference.
        await page.addStyleTag({ content: '.runs img { background: gray }' })
        const light = await picture.screenshot()
        await page.locator('.VPNavBarAppearance button').click()
        expect(await page.evaluate('document.documentElement.classList.contains("dark")')).toBe(true)
        await expect.poll(async () => light.equals(await picture.screenshot())).toBe(false)
      }))

    it('a page leads to its Markdown', () =>
      look('/docs/mutex.html', {}, async (page) => {
        await page.getByRole('link', { name: 'This page as Markdown' }).click()
        await page.waitForURL('**/docs/mutex.md')
        expect(await page.textContent('body')).toContain('# Mutex')
      }))
  })
})
