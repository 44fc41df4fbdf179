import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../src/stores/memory/index.js'
import { describeOn } from '../../servers/availability.js'
import { expectNoSideways, PHONE, visit, withChromium } from './browser.js'
import { Claims } from './claims.js'
import { World } from './world.js'

const ATTACKS = [
  '<script>window.hacked = 1</script>',
  '<img src=x onerror="window.hacked = 1">',
  '"><svg onload=window.hacked=1>',
  "javascript:window.hacked=1//'",
  '{{constructor.constructor("window.hacked=1")()}}',
  '</title></textarea><iframe srcdoc="<script>parent.hacked=1</script>">',
  '..',
  '.',
  '../../api/info',
  'a?b#c&d=e%2F',
  '__proto__',
  'right\u202Eto left\u2066',
  `zero\u200Bwidth\uFEFF\u0000`,
  'z\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301algo',
  `long-${'x'.repeat(3000)}`,
  '  spaces  ',
]

describeOn('chromium', 'hostile names, hosts, labels and owners', () => {
  withChromium()

  it('are shown as text, and nothing of them ever runs', async () => {
    const world = new World(memory(), '<b>space</b>')
    onTestFinished(() => world.close())
    const claims = new Claims(world.store, world.space)
    for (const text of ATTACKS) {
      const said = { host: text, owner: text, label: text, pid: 7 }
      await claims.add(text, said)
      await claims.add(text, said)
    }
    const { page, complaints } = await visit(await world.serve(), PHONE)
    await page.getByText(`${ATTACKS.length} in all`).waitFor()
    await expectNoSideways(page)
    for (const text of ATTACKS) {
      await page.goto(`${page.url().split('#')[0]}#/r/${encodeURIComponent(text)}`)
      await page.getByText('1 holder, 1 waiter').waitFor()
      await expectNoSideways(page)
      await page.getByRole('button', { name: /^Break the hold/ }).click()
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    // Only the page's own elements are there.
    expect(await page.locator('iframe, object, embed, img, script:not([src="app.js"])').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it('cannot hide characters, and keep the whole in a tooltip', async () => {
    const world = new World(memory())
    onTestFinished(() => world.close())
    const claims = new Claims(world.store, world.space)
    const long = `begin${'x'.repeat(500)}end`
    await claims.add('a\u202Egnp.exe', { label: 'b\u200Bc' })
    await claims.add(long)
    const { page } = await visit(await world.serve())
    await page.getByRole('link', { name: 'a‹U+202E›gnp.exe' }).waitFor()
    await page.getByText('b‹U+200B›c').waitFor()
    expect(await page.getByTitle(long).count()).toBe(1)
    const shown = await page.getByTitle(long).innerText()
    expect([shown.startsWith('begin'), shown.endsWith('end'), shown.length < 250]).toEqual([true, true, true])
  })
})
