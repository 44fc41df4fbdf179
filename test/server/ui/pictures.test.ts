import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../src/stores/memory/index.js'
import { describeOn } from '../../servers/availability.js'
import { visit, withChromium } from './browser.js'
import { busy, crowd } from './crowd.js'
import { contend, World } from './world.js'

/** Set by scripts/pictures.mjs: the pictures of the documentation. */
const FOLDER = process.env['HOLDFAST_PICTURES']
/** So long the locks are contended for before the pictures of the documentation are taken. */
const CONTENTION_MS = FOLDER ? 75_000 : 0
const HOLD_MS = FOLDER ? 2500 : 100
const MOST_BYTES = 150_000

const WIDE = { viewport: { width: 1200, height: 720 } }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

interface Picture {
  readonly file: string
  readonly hash: string
  readonly awaited: string
  readonly options: BrowserContextOptions
  prepare?(page: Page): Promise<void>
}

const PICTURES: readonly Picture[] = [
  {
    file: 'resources.png',
    hash: '#/',
    awaited: '[data-row="9"]',
    options: { ...WIDE, colorScheme: 'light' },
  },
  {
    file: 'resource.png',
    hash: '#/r/stock%3Ask-1138',
    awaited: '.timeline .lane rect',
    options: { viewport: { width: 1200, height: 820 }, colorScheme: 'dark' },
  },
  {
    file: 'break.png',
    hash: '#/r/order%3A42',
    awaited: '.waiter-row .act',
    options: { viewport: { width: 1200, height: 560 }, colorScheme: 'light' },
    prepare: (page) => page.getByRole('button', { name: /^Break the hold/ }).click(),
  },
  {
    file: 'phone.png',
    hash: '#/r/catalogue',
    awaited: '.tile.reader',
    options: { ...PHONE, colorScheme: 'light' },
  },
]

describeOn('chromium', 'the pictures of the documentation', () => {
  withChromium()

  it('are taken of real contention', { timeout: CONTENTION_MS + 300_000 }, async () => {
    const folder = FOLDER ?? mkdtempSync(join(tmpdir(), 'holdfast-pictures-'))
    if (!FOLDER) onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(folder, { recursive: true })
    const world = new World(memory())
    onTestFinished(() => world.close())
    const url = await world.serve()
    // The server sees what happens only while someone looks.
    await visit(url)
    await contend(world)
    await crowd(world)
    const stop = busy(world, 'stock:sk-1138', HOLD_MS)
    await pause(CONTENTION_MS)
    for (const { file, hash, awaited, options, prepare } of PICTURES) {
      const { page } = await visit(url + hash, options)
      await page.locator(awaited).first().waitFor()
      await prepare?.(page)
      const path = join(folder, file)
      await page.screenshot({ path, animations: 'disabled' })
      expect(statSync(path).size, file).toBeLessThan(MOST_BYTES)
    }
    await stop()
  })
})
