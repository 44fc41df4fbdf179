import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { Bench, type Running } from '../cli/processes.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A project that has the built package and version 5 of the clients. */
function project(): { bench: Bench; script: string } {
  const bench = new Bench()
  const modules = bench.path('node_modules')
  mkdirSync(join(modules, 'holdfast'), { recursive: true })
  for (const part of ['dist', 'package.json'])
    cpSync(join(ROOT, part), join(modules, 'holdfast', part), { recursive: true })
  for (const name of ['ioredis', 'redis'])
    symlinkSync(join(ROOT, 'node_modules', `${name}5`), join(modules, name))
  const script = bench.path('contender.mjs')
  cpSync(join(ROOT, 'test/stores/redis/contender.mjs'), script)
  return { bench, script }
}

/** Resolves when the lock has been taken 40 times more. */
async function goesOn(running: Running): Promise<void> {
  const count = Number(/.*inside (\d+) times/s.exec(running.stdout)?.[1] ?? 0)
  await running.wrote(new RegExp(`inside ${count + 40} times`))
}

describeOn('redis', 'version 5 of the clients, by a URL', () => {
  it.each(['ioredis', 'redis'])(
    '%s goes on after faults, and lets its process end',
    async (driver) => {
      const server = await startRedis({ persistence: 'always' })
      onTestFinished(() => server.stop())
      const { bench, script } = project()
      const running = bench.node([script, `${server.url}?driver=${driver}`])
      await goesOn(running)
      await server.dropClients()
      await goesOn(running)
      await server.restart({ keepData: true })
      await goesOn(running)
      running.end()
      await running.wrote(/over/)
      await server.kill()
      expect(await running.done).toMatchObject({ code: 0, stderr: '' })
    },
    120_000,
  )
})
