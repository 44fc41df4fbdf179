import { expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../../src/contract/store.js'
import { storeFromUrl } from '../../../src/primitives/urls.js'
import { memory } from '../../../src/stores/memory/index.js'
import { InterceptedStore } from '../../../src/testing/conformance/intercepted-store.js'
import { describeOn, serverAvailability } from '../../servers/availability.js'
import { TcpProxy } from '../../servers/proxy.js'
import { startRedis } from '../../servers/redis.js'
import { until, visit, withChromium } from './browser.js'
import { Claims } from './claims.js'
import { World } from './world.js'

const TOKEN = 'a-token-of-24-characters'

function worldOn(store: Store = memory()): World {
  const world = new World(store)
  onTestFinished(() => world.close())
  return world
}

describeOn('chromium', 'the dashboard', () => {
  withChromium()

  it('asks for the token, refuses a wrong one, and signs out', async () => {
    const world = worldOn()
    await world.on('api-1').mutex('order:42').acquire()
    const { page, complaints } = await visit(await world.serve({ token: TOKEN }))
    await page.getByLabel('Token').fill('a-token-that-is-not-right')
    await page.keyboard.press('Enter')
    await page.getByText('This token is not valid.').waitFor()
    expect(await page.getByText('order:42').count()).toBe(0)
    await page.getByLabel('Token').fill(TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'order:42' }).waitFor()

    // Read-only: nothing offers a change.
    await page.getByRole('link', { name: 'order:42' }).click()
    await page.getByText('1 holder, nobody waits').waitFor()
    expect(await page.getByRole('button', { name: 'Break' }).count()).toBe(0)

    // The token is in a cookie that scripts cannot read, and lasts over a reload.
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.reload()
    await page.getByText('1 holder, nobody waits').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByLabel('Token').waitFor()
    expect(complaints).toEqual([])
  })

  it('shows an empty space, and a filter that lets nothing through', async () => {
    const world = worldOn()
    const { page } = await visit(await world.serve())
    await page.getByRole('heading', { name: 'Nothing is locked' }).waitFor()
    const hold = await world.on('api-1').mutex('order:42').acquire()
    // By itself: nobody reloads.
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    await page.getByRole('searchbox').fill('nothing like it')
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
    await page.getByRole('button', { name: 'Clear them' }).click()
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/')
    await hold.release()
    await page.getByRole('heading', { name: 'Nothing is locked' }).waitFor()
  })

  it('filters by state, host, label and prefix, and the address shows the same again', async () => {
    const world = worldOn()
    await world.on('api-1').mutex('order:1').acquire({ label: 'checkout' })
    await world.on('worker-1').mutex('order:2').acquire({ label: 'export' })
    await world.on('worker-1').mutex('stock:1').acquire({ label: 'export' })
    const { page } = await visit(await world.serve())
    const names = () => page.locator('[data-row]').allInnerTexts()
    await page.getByText('3 in all').waitFor()
    await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByLabel('Host').fill('worker-1')
    await page.getByText('2 found').waitFor()
    await page.getByLabel('Prefix').fill('order:')
    await page.getByText('1 found').waitFor()
    expect(await names()).toEqual(['order:2'])
    const shared = page.url()
    await page.getByLabel('Label').fill('checkout')
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await page.getByText('3 in all').waitFor()
    await page.getByRole('combobox', { name: 'State' }).selectOption('waited')
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()

    const { page: other } = await visit(shared)
    await other.getByText('1 found').waitFor()
    expect(await other.locator('[data-row]').allInnerTexts()).toEqual(['order:2'])
  })

  it('stands still while it is paused, and continues', async () => {
    const world = worldOn()
    const claims = new Claims(world.store, world.space)
    await claims.add('order:1')
    const { page } = await visit(await world.serve())
    await page.getByRole('link', { name: 'order:1' }).waitFor()
    await page.getByRole('button', { name: 'Pause the updates' }).click()
    await page.getByRole('button', { name: 'Continue the updates' }).waitFor()
    await claims.add('order:2')
    const frozen = await page.locator('.held').first().innerText()
    // The server itself sees it meanwhile.
    await expect
      .poll(() =>
        page.evaluate("fetch('api/resources').then((answer) => answer.json()).then((list) => list.total)"),
      )
      .toBe(2)
    // Longer than a reload that was due before the pause would take.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 1500))')
    expect(await page.getByRole('link', { name: 'order:2' }).count()).toBe(0)
    expect(await page.locator('.held').first().innerText()).toBe(frozen)
    await page.getByRole('button', { name: 'Continue the updates' }).click()
    await page.getByRole('link', { name: 'order:2' }).waitFor()
  })

  it('shows nothing when all was released during a pause', async () => {
    const world = worldOn()
    const claims = new Claims(world.store, world.space)
    const id = await claims.add('order:1')
    const { page } = await visit(await world.serve())
    await page.getByRole('link', { name: 'order:1' }).waitFor()
    await page.getByRole('button', { name: 'Pause the updates' }).click()
    await claims.release('order:1', id)
    await page.getByRole('button', { name: 'Continue the updates' }).click()
    await page.getByRole('heading', { name: 'Nothing is locked' }).waitFor()
  })

  it('does not say that the store is down when it came back during a pause', async () => {
    const store = new InterceptedStore(memory())
    const world = worldOn(store)
    await world.on('api-1').mutex('order:42').acquire()
    const { page } = await visit(await world.serve())
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    store.cut('inspect')
    await page.getByRole('alert').getByText('The store does not answer.').waitFor()
    await page.getByRole('button', { name: 'Pause the updates' }).click()
    store.heal()
    // Somebody else has seen that it is back, so no stream is told.
    const total = "fetch('api/resources').then((answer) => answer.json()).then((list) => list.total)"
    await expect.poll(() => page.evaluate(total)).toBe(1)
    await page.getByRole('button', { name: 'Continue the updates' }).click()
    await until(page, "document.querySelector('.banner') === null")
  })

  it('says that its server is gone, and connects again', async () => {
    const world = worldOn()
    await world.on('api-1').mutex('order:42').acquire()
    const proxy = await TcpProxy.start(Number(new URL(await world.serve()).port))
    onTestFinished(() => proxy.stop())
    const { page } = await visit(`http://127.0.0.1:${proxy.port}/locks/`)
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    proxy.mode = 'refuse'
    await page.getByRole('alert').getByText('The connection to the dashboard server is lost.').waitFor()
    await page.getByRole('button', { name: /^Offline/ }).waitFor()
    await page.getByText(/^Data from \d+ s ago$/).waitFor()
    // What was known stays, in grey.
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    await until(page, "getComputedStyle(document.querySelector('main')).filter.includes('grayscale')")
    await page.getByText(/Next attempt in \d+ s\.|Trying …/).waitFor()
    proxy.mode = 'pass'
    await page.getByRole('button', { name: /^Live/ }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await world.on('api-2').mutex('order:43').acquire()
    await page.getByRole('link', { name: 'order:43' }).waitFor()
  })

  it.skipIf(serverAvailability('redis'))('says that the store is down, and why', async () => {
    const redis = await startRedis()
    const world = new World(await storeFromUrl(redis.url))
    onTestFinished(async () => {
      await redis.restart({ keepData: false })
      await world.close()
      await redis.stop()
    })
    await world.on('api-1').mutex('order:42').acquire()
    const { page } = await visit(await world.serve())
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    await redis.kill()
    const alert = page.getByRole('alert')
    await alert.getByText('The store does not answer.').waitFor()
    await alert
      .getByText(/ECONNREFUSED|closed|not answer/)
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'order:42' }).waitFor()
    await redis.restart({ keepData: false })
    await until(page, "document.querySelector('.banner') === null")
  })

  it('comes without its server, and waits for it', async () => {
    const { page } = await visit(await worldOn().serve())
    await page.route('**/api/info', (route) => route.abort())
    await page.reload()
    await page.getByText('The dashboard server does not answer. The page tries again.').waitFor()
    await page.unroute('**/api/info')
    await page.getByRole('heading', { name: 'Nothing is locked' }).waitFor()
  })
})
