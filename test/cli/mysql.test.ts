import { it, onTestFinished } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { countListAndCheck, sellAll } from './store-cases.js'

describeOn('mariadb', 'the command line and the demonstration on MySQL', () => {
  async function url(): Promise<string> {
    const server = await startMariadb()
    onTestFinished(() => server.stop())
    return server.url
  }

  it('the flash sale', { timeout: 180_000 }, async () => sellAll(await url()))

  it('holdfast run, ls and doctor, with each driver', { timeout: 180_000 }, async () => {
    const store = await url()
    const urls = ['mysql2', 'mariadb'].map((driver) => `${store}?driver=${driver}`)
    await countListAndCheck(urls, /innodb_flush_log_at_trx_commit/)
  })
})
