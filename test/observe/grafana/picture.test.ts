import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { visit, withChromium } from '../../server/ui/browser.js'
import { describeOn } from '../../servers/availability.js'
import { type PrometheusServer, startPrometheus } from '../../servers/prometheus.js'
import { type RedisServer, startRedis } from '../../servers/redis.js'
import { panels, seriesOf, title, type View, variables } from './dashboard.js'

/** Set by scripts/pictures.mjs: the pictures of the documentation. */
const FOLDER = process.env['HOLDFAST_PICTURES']
const SHOWN_SECONDS = FOLDER ? 120 : 2
const SCRAPE_SECONDS = FOLDER ? 1 : 0.25
const STEP_SECONDS = 2 * SCRAPE_SECONDS
const PROCESSES = FOLDER ? 4 : 2
/** Longer than the lease of the stock. */
const STOPPED_MS = 2000
/** Longer than the shop waits for an answer of the store. */
const STORE_STOPPED_MS = 1500
const MOST_BYTES = 200_000

const require = createRequire(import.meta.url)
const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

describeOn('redis', 'on Redis', () => {
  describeOn('prometheus', 'in Prometheus', () => {
    describeOn('chromium', 'the picture of the Grafana dashboard', () => {
      withChromium()

      it('is drawn from a real shop', { timeout: SHOWN_SECONDS * 1000 + 120_000 }, async () => {
        const redis = await startRedis()
        onTestFinished(() => redis.stop())
        const shop = await Promise.all(
          Array.from({ length: PROCESSES }, (_, index) => startShop(redis, index)),
        )
        const targets = shop.map(({ port }) => `127.0.0.1:${port}`)
        const prometheus = await startPrometheus({ targets, scrapeMs: SCRAPE_SECONDS * 1000 })
        onTestFinished(() => prometheus.stop())
        await expect.poll(() => prometheus.value('sum(up)')).toBe(PROCESSES)
        if (FOLDER)
          await mishaps(
            redis,
            shop.map(({ child }) => child),
          )
        const samples = () => prometheus.value('max(count_over_time(up[1h]))')
        await expect
          .poll(samples, { timeout: SHOWN_SECONDS * 1000 + 30_000 })
          .toBeGreaterThan(SHOWN_SECONDS / SCRAPE_SECONDS)
        await draw(prometheus)
      })
    })
  })
})

async function startShop(redis: RedisServer, index: number): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(fileOf('shop.mjs'), [redis.url, String(index)], { execArgv: [] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = await once(child, 'message')
  return { child, port: port as number }
}

/** A process stops for longer than its lease while it holds the stock. Later the store stops. */
async function mishaps(redis: RedisServer, shop: readonly ChildProcess[]): Promise<void> {
  await pause(SHOWN_SECONDS * 300)
  const late = shop[1] as ChildProcess
  late.send('stop')
  await once(late, 'message')
  await pause(STOPPED_MS)
  late.kill('SIGCONT')
  await pause(SHOWN_SECONDS * 300)
  redis.pause()
  await pause(STORE_STOPPED_MS)
  redis.resume()
}

async function draw(prometheus: PrometheusServer): Promise<void> {
  const folder = FOLDER ?? mkdtempSync(join(tmpdir(), 'holdfast-pictures-'))
  if (!FOLDER) onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(folder, { recursive: true })
  const to = Math.floor((await prometheus.value('max(timestamp(holdfast_held))')) ?? 0)
  const view: View = {
    to,
    rangeSeconds: SHOWN_SECONDS,
    stepSeconds: STEP_SECONDS,
    scrapeSeconds: SCRAPE_SECONDS,
  }
  const given = {
    title,
    variables: variables.map(({ label }) => ({ label, value: 'All' })),
    from: to - SHOWN_SECONDS,
    to,
    step: STEP_SECONDS,
    panels: await Promise.all(
      panels.map(async (panel) => ({ ...panel, series: await seriesOf(prometheus, panel, view) })),
    ),
  }
  const { page, complaints } = await visit('about:blank', { viewport: { width: 1120, height: 800 } })
  await page.addStyleTag({ path: require.resolve('uplot/dist/uPlot.min.css') })
  await page.addStyleTag({ path: fileOf('page.css') })
  await page.addScriptTag({ path: require.resolve('uplot/dist/uPlot.iife.min.js') })
  await page.addScriptTag({ path: fileOf('page.mjs') })
  await page.evaluate(`drawDashboard(${JSON.stringify(given)})`)
  expect(await page.locator('.panel').count()).toBe(panels.length)
  const path = join(folder, 'grafana.png')
  await page.screenshot({ path, fullPage: true })
  expect(complaints).toEqual([])
  expect(statSync(path).size).toBeLessThan(MOST_BYTES)
}
