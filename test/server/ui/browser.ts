import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { find } from '../../../scripts/servers.mjs'

/** What the page can do within this time; a hang takes longer. */
export const PATIENCE_MS = 60_000

/** A page, and what the browser has complained about: errors, violations of the policy. */
export interface Visit {
  readonly page: Page
  readonly complaints: string[]
}

let browser: Browser

/** One Chromium for the tests of a file; each visit has a profile of its own. */
export function withChromium(): void {
  beforeAll(async () => {
    const executablePath = find('chromium') ?? 'chromium'
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  afterAll(() => browser?.close())
}

export async function visit(url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    // A refused request is a matter of the test that provokes it.
    const isRequest = message.text().startsWith('Failed to load resource')
    if (['error', 'warning'].includes(message.type()) && !isRequest) complaints.push(message.text())
  })
  await page.goto(url)
  return { page, complaints }
}

export const PHONE: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  isMobile: true,
  hasTouch: true,
}

/** Nothing is wider than the window. */
export async function expectNoSideways(page: Page): Promise<void> {
  // Not innerWidth: a phone zooms out until everything fits, and then says the larger width.
  const width = await page.evaluate('document.documentElement.scrollWidth')
  expect(width, 'the width of the page').toBeLessThanOrEqual(page.viewportSize()?.width ?? 0)
}

/** Waits until an expression is true in the page. */
export async function until(page: Page, expression: string): Promise<void> {
  // Not waitForFunction, which the policy of the page forbids: it evaluates in the page itself.
  await expect.poll(() => page.evaluate(expression)).toBe(true)
}
