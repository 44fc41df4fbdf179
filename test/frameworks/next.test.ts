import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { redis } from '../../src/stores/redis/index.js'
import { Bench } from '../cli/processes.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { startRedis } from '../servers/redis.js'
import { describeInstalled, InstalledProject } from './installed.js'
import { recipeOf } from './recipes.js'
import { abortWaiting, countOf, payAt } from './stage.js'

const ROUTE = 'app/orders/[id]/pay/route'
const LAYOUT = `import { createElement } from 'react'
export default ({ children }) => createElement('html', null, createElement('body', null, children))
`

/** Otherwise Next.js would take the repository around it for its workspace. */
const CONFIG = `const root = import.meta.dirname
export default { outputFileTracingRoot: root, turbopack: { root } }
`

describeInstalled('next', 'a route handler of Next.js', () => {
  describeOn('redis', 'on Redis', () => {
    const project = new InstalledProject('next')
    beforeAll(async () => {
      project.remove('app', '.next')
      const route = recipeOf('docs/guides/frameworks/nextjs.md', '## A route handler', {
        language: 'ts next',
        // A wait that cannot end by itself.
        change: { "'5s'": "'1h'" },
      })
      await project.prepare({ [`${ROUTE}.ts`]: route, 'app/layout.js': LAYOUT, 'next.config.js': CONFIG })
      await project.compile(`${ROUTE}.ts`)
      // Next.js would install a compiler of its own for it.
      project.remove(`${ROUTE}.ts`)
      await project.run('node_modules/next/dist/bin/next', ['build'], { NEXT_TELEMETRY_DISABLED: '1' })
    }, 300_000)

    it('takes the lock, and an aborted request leaves no waiter in line', async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      const port = await freePort()
      const next = ['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1', '-p', String(port)]
      const running = new Bench().start(
        '/bin/sh',
        ['-c', `cd "$0" && exec "$@"`, project.folder, process.execPath, ...next],
        { REDIS_URL: server.url, NEXT_TELEMETRY_DISABLED: '1' },
      )
      const locks = new Holdfast(redis(server.url))
      onTestFinished(() => locks.close({ drain: 0 }))
      const pay = await payAt(port)
      const hold = await abortWaiting(locks, pay)
      const late = pay(42)
      await expect.poll(() => countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 1 })
      await hold.release()
      expect(await late).toMatchObject({ status: 200, body: { paid: '42' } })
      expect(running.stderr).toBe('')
      running.kill('SIGTERM')
      await running.done
    })
  })
})
