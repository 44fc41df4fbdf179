import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { storeFromUrl } from '../../../src/primitives/urls.js'
import { describeOn, type ServerName, serverAvailability } from '../../servers/availability.js'
import { borrowMariadb } from '../../servers/mariadb.js'
import { startMemcached } from '../../servers/memcached.js'
import { borrowPostgres } from '../../servers/postgres.js'
import { borrowRedis } from '../../servers/redis.js'
import { startZooKeeper } from '../../servers/zookeeper.js'
import { visit, withChromium } from './browser.js'
import { type Contention, contend, World } from './world.js'

/** Starts a server, a browser and five clients: a busy machine needs its time for it. */
const HANG_MS = 600_000

interface Given {
  readonly url: string
  stop(): Promise<void>
}

const STORES: readonly { name: string; server?: ServerName; start(): Promise<Given> }[] = [
  { name: 'memory', start: async () => ({ url: `memory:ui-${process.pid}`, stop: async () => {} }) },
  { name: 'sqlite', start: startSqlite },
  { name: 'redis', server: 'redis', start: borrowRedis },
  { name: 'postgres', server: 'postgres', start: borrowPostgres },
  { name: 'mariadb', server: 'mariadb', start: borrowMariadb },
  { name: 'zookeeper', server: 'zookeeper', start: startKeeper },
  { name: 'memcached', server: 'memcached', start: startMemcached },
]

async function startKeeper(): Promise<Given> {
  const server = await startZooKeeper()
  return { url: `zookeeper://${server.address}`, stop: () => server.stop() }
}

async function startSqlite(): Promise<Given> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ui-'))
  return { url: `sqlite:${join(folder, 'locks.db')}`, stop: async () => rmSync(folder, { recursive: true }) }
}

describeOn('chromium', 'the dashboard in a browser', () => {
  withChromium()
  for (const { name, server, start } of STORES) {
    const reason = server ? serverAvailability(server, { own: false }) : null
    describe.skipIf(reason !== null)(reason === null ? name : `${name} (skipped: ${reason})`, () => {
      it('shows everything, and carries out every change', { timeout: HANG_MS }, async () => {
        const given = await start()
        const world = new World(await storeFromUrl(given.url), `ui-${process.pid}`)
        try {
          const contention = await contend(world)
          const { page, complaints } = await visit(await world.serve())
          await seeResources(page)
          await breakHold(page, contention)
          await cancelWaiter(page, contention)
          await resize(page, contention)
          await seeReaders(page)
          await seeStanding(page)
          await seeDoctorAndAudit(page)
          expect(complaints).toEqual([])
        } finally {
          await world.close()
          await given.stop()
        }
      })
    })
  }
})

async function seeResources(page: Page): Promise<void> {
  const order = page.getByRole('row', { name: 'order:42' })
  await order.getByText('exclusive').waitFor()
  expect(await order.getByRole('cell').allInnerTexts()).toEqual([
    'order:42\nlock',
    'exclusive',
    expect.stringMatching(/^api-1\s*\d+\s*checkout$/),
    expect.stringMatching(/^\d+ s$/),
    expect.stringMatching(/^3/),
    expect.stringMatching(/^\d+ s$/),
  ])
  // The most contended is the first.
  expect(await page.locator('[data-row="0"]').innerText()).toBe('order:42')
  await page.getByRole('row', { name: 'catalogue' }).getByText('2 readers').waitFor()
  await page.getByRole('row', { name: 'gpu' }).getByText('3 of 4').waitFor()
  await page.getByRole('searchbox').fill('cata')
  await page.getByText('1 found').waitFor()
  expect(page.url()).toContain('search=cata')
  await page.getByRole('searchbox').fill('')
}

async function breakHold(page: Page, { orderHold, orderWaiters }: Contention): Promise<void> {
  await page.getByRole('link', { name: 'order:42' }).click()
  await page.getByText('1 holder, 3 waiters').waitFor()
  const picture = page.getByRole('img', { name: /^1 holder: api-1 .*3 waiters, first: api-2/ })
  await picture.waitFor()
  await page.getByRole('cell', { name: String(orderHold.fence) }).waitFor()
  await page.getByRole('img', { name: /^held \d+ s/ }).waitFor()

  await page.getByRole('button', { name: /^Break the hold of api-1/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Break this hold?' })
  await dialog.getByText(/^api-1 \(process \d+, checkout\) loses the lock at once\./).waitFor()
  await dialog.getByText('The next of 3 waiters gets it.').waitFor()
  expect(orderHold.signal.aborted).toBe(false)
  await dialog.getByRole('button', { name: 'Break the hold' }).click()
  await page.getByRole('dialog', { name: 'Done' }).getByText('The hold is broken.').waitFor()
  await expect.poll(() => orderHold.signal.aborted).toBe(true)
  expect(await orderWaiters[0]?.outcome).toBe('granted')
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByText('1 holder, 2 waiters').waitFor()
  await page.getByRole('button', { name: /^Break the hold of api-2/ }).waitFor()
}

async function cancelWaiter(page: Page, { orderWaiters }: Contention): Promise<void> {
  await page.getByRole('button', { name: /^Cancel waiter 1, api-3/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Cancel this waiter?' })
  await dialog.getByText('1 waiter behind it moves up by one.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel the waiter' }).click()
  await page.getByRole('dialog', { name: 'Done' }).waitFor()
  expect(await orderWaiters[1]?.outcome).toBe('CANCELLED')
  await page.keyboard.press('Escape')
  await page.getByText('1 holder, 1 waiter').waitFor()
  await page.getByRole('button', { name: /^Cancel waiter 1, worker-1/ }).waitFor()
}

async function resize(page: Page, { gpuWaiters }: Contention): Promise<void> {
  await page.getByRole('link', { name: 'Resources' }).first().click()
  await page.getByRole('link', { name: 'gpu' }).click()
  await page.getByText('2 holders, 1 waiter').waitFor()
  await page.getByRole('button', { name: 'Resize' }).click()
  const dialog = page.getByRole('dialog', { name: 'Resize the semaphore' })
  await dialog.getByRole('spinbutton', { name: 'Permits' }).fill('6')
  await dialog.getByText('From 4 to 6 permits. 3 permits can go to the 1 waiter at once, in order.').waitFor()
  await dialog.getByRole('button', { name: 'Resize' }).click()
  await page.getByText('The semaphore has 6 permits now.').waitFor()
  expect(await gpuWaiters[0]?.outcome).toBe('granted')
  await page.keyboard.press('Escape')
  await page.getByText('5 of 6').waitFor()
}

async function seeReaders(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Resources' }).first().click()
  await page.getByRole('link', { name: 'catalogue' }).click()
  await page.getByText('2 readers, 2 waiters').waitFor()
  expect(await page.locator('.tile.reader.holds').count()).toBe(2)
  expect(await page.locator('.tile.waits .what').allInnerTexts()).toEqual(['write', 'read'])
}

async function seeStanding(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Elections and jobs' }).click()
  const election = page.locator('.election', { hasText: 'scheduler' })
  await election.getByText('api-1').waitFor()
  await election.getByText('1 in line').waitFor()
  await election.getByText('Last leaders').click()
  await election.getByText('node-1').waitFor()
  await page.getByText('2 of 3 steps to go').waitFor()
  await page.getByText('1 of 3').waitFor()
  await page.getByText('last run').waitFor()
}

async function seeDoctorAndAudit(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Doctor' }).click()
  await page.locator('.findings li, .empty').first().waitFor()
  await page.getByRole('link', { name: 'Audit log' }).click()
  for (const action of ['break', 'cancel', 'resize']) await page.getByRole('cell', { name: action }).waitFor()
}
