import { it, onTestFinished } from 'vitest'
import { describeOn } from '../servers/availability.js'
import { startMemcached } from '../servers/memcached.js'
import { countListAndCheck } from './store-cases.js'

describeOn('memcached', 'the command line on memcached', () => {
  it('holdfast run, ls and doctor', { timeout: 180_000 }, async () => {
    const server = await startMemcached()
    onTestFinished(() => server.stop())
    await countListAndCheck([server.url], /restart of memcached forgets every lock/)
  })
})
