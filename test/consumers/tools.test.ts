import { beforeAll, expect, it } from 'vitest'
import { recipeOf } from '../frameworks/recipes.js'
import { pageOf } from '../project/pages.js'
import { describeInFull, Project } from './project.js'

/** Holds a lock on the store that `url` names, and says so. */
const program = (url: string): string => `
import { Holdfast, HoldfastError } from 'holdfast'
try {
  const locks = await Holdfast.open(${url})
  console.log(await locks.mutex('a').run(() => 'held', { wait: '5s' }))
  await locks.close()
} catch (error) {
  console.log(error instanceof HoldfastError ? error.message : error)
}
`
/** A port where nothing listens: the driver was found and loaded if it says that it cannot connect. */
const REFUSED = 'Redis cannot be reached: connect ECONNREFUSED 127.0.0.1:1'
// Jest can take seconds to load the driver, and that counts.
const NO_SERVER = `'redis://127.0.0.1:1?driver=ioredis', { storeTimeout: 15_000 }`

describeInFull('default Jest, CommonJS', () => {
  it('loads and uses it', { timeout: 300_000 }, async () => {
    const project = await Project.make(
      {
        'locks.test.js': `
          const { Holdfast, HoldfastError } = require('holdfast')
          const { memory } = require('holdfast/memory')
          test('a lock', async () => {
            const locks = new Holdfast(memory())
            expect(await locks.mutex('a').run((hold) => hold.fence)).toBeGreaterThan(0)
            expect(() => locks.mutex('')).toThrow(HoldfastError)
            await locks.close()
          })
          test('a driver that is installed', async () => {
            await expect(Holdfast.open(${NO_SERVER})).rejects.toThrow('${REFUSED}')
          }, 120_000)`,
      },
      ['jest', 'ioredis'],
    )
    const { code, output } = await project.npx('jest')
    expect(output).toContain('Tests:       2 passed')
    expect(code, output).toBe(0)
  })
})

describeInFull('ts-jest, CommonJS', () => {
  it('loads and uses it', { timeout: 300_000 }, async () => {
    const project = await Project.make(
      {
        'jest.config.js': `module.exports = { preset: 'ts-jest', testEnvironment: 'node' }`,
        'tsconfig.json': {
          compilerOptions: {
            module: 'commonjs',
            target: 'es2022',
            strict: true,
            esModuleInterop: true,
            experimentalDecorators: true,
            types: ['jest'],
          },
        },
        'locks.test.ts': `
          import { Holdfast } from 'holdfast'
          import { memory } from 'holdfast/memory'
          const locks = new Holdfast(memory())
          class Orders {
            @locks.locked((id: string) => id)
            async pay(id: string): Promise<string> {
              return 'paid ' + id
            }
          }
          test('a decorated method', async () => {
            expect(await new Orders().pay('7')).toBe('paid 7')
            await locks.close()
          })`,
      },
      ['jest@29', 'ts-jest@29', '@types/jest@29', 'typescript@5'],
    )
    const { code, output } = await project.npx('jest')
    expect(output).toContain('Tests:       1 passed')
    expect(code, output).toBe(0)
  })
})

/** For `node --import`: ends the program after the third tick of its job. */
const END_AFTER_THIRD_TICK = `
import { tracingChannel } from 'node:diagnostics_channel'
let ticks = 0
// Each tick takes the hold, also where it then finds that the job has run already.
tracingChannel('holdfast:hold').asyncEnd.subscribe(() => {
  if (++ticks !== 3) return
  console.log('third tick')
  process.kill(process.pid, 'SIGTERM')
})
`
const NEST_11 = [
  ...['@nestjs/common@11', '@nestjs/core@11', 'reflect-metadata', 'rxjs'],
  ...['typescript@5', '@types/node@20'],
]

describeInFull('a NestJS application', () => {
  it('locks a handler, above and below its route', { timeout: 300_000 }, async () => {
    const project = await Project.make(
      {
        'tsconfig.json': {
          compilerOptions: {
            module: 'commonjs',
            target: 'es2022',
            strict: true,
            experimentalDecorators: true,
            emitDecoratorMetadata: true,
            types: ['node'],
            outDir: 'out',
          },
          include: ['main.ts'],
        },
        'main.ts': `
          import 'reflect-metadata'
          import { Controller, Get, Module, Param } from '@nestjs/common'
          import { NestFactory } from '@nestjs/core'
          import { Holdfast } from 'holdfast'
          import { memory } from 'holdfast/memory'

          const locks = new Holdfast(memory())

          @Controller('orders')
          class Orders {
            @locks.locked((id: string) => 'order:' + id)
            @Get('above/:id')
            async above(@Param('id') id: string): Promise<string> {
              return 'above ' + id
            }

            @Get('below/:id')
            @locks.locked((id: string) => 'order:' + id)
            async below(@Param('id') id: string): Promise<string> {
              return 'below ' + id
            }
          }

          @Module({ controllers: [Orders] })
          class App {}

          async function main(): Promise<void> {
            const app = await NestFactory.create(App, { logger: false })
            await app.listen(0, '127.0.0.1')
            const url = await app.getUrl()
            for (const path of ['above/1', 'below/2']) console.log(await (await fetch(url + '/orders/' + path)).text())
            await app.close()
            await locks.close()
          }
          void main()`,
      },
      [...NEST_11, '@nestjs/platform-express@11'],
    )
    expect(await project.npx('tsc', '-p', '.')).toEqual({ code: 0, output: '' })
    expect(await project.node('out/main.js')).toEqual({ code: 0, output: 'above 1\nbelow 2\n' })
  })

  it('runs the programs of the page with version 11', { timeout: 300_000 }, async () => {
    const page = 'docs/guides/frameworks/nestjs.md'
    const job = recipeOf(page, '## A job once per cluster', {
      change: { '0 3 * * *': '* * * * * *', 'sqlite:./locks.db': 'memory:' },
    })
    const project = await Project.make(
      {
        'package.json': { private: true, type: 'module' },
        'tsconfig.json': {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2022',
            strict: true,
            skipLibCheck: true,
            experimentalDecorators: true,
            emitDecoratorMetadata: true,
            types: ['node'],
          },
        },
        'tests.ts': recipeOf(page, '## Tests'),
        'job.ts': job,
        'end.mjs': END_AFTER_THIRD_TICK,
      },
      [...NEST_11, '@nestjs/schedule@6'],
    )
    expect(await project.npx('tsc', '-p', '.')).toEqual({ code: 0, output: '' })
    expect(await project.node('tests.js')).toEqual({ code: 0, output: '[ true, false ] 0\n' })
    // Nest ends the process by the signal that it got.
    const { output } = await project.node('--import', './end.mjs', 'job.js')
    expect(output).toContain('third tick')
    expect(output.match(/the report is written by/g)).toHaveLength(1)
    expect(output).not.toContain('ERROR')
  })
})

describeInFull('holdfast/nestjs in Jest', () => {
  const spec = `
    import 'reflect-metadata'
    import { Injectable } from '@nestjs/common'
    import { Test } from '@nestjs/testing'
    import { Holdfast } from 'holdfast'
    import { memory } from 'holdfast/memory'
    import { HoldfastModule, Locked } from 'holdfast/nestjs'

    @Injectable()
    class Stock {
      pieces = 1
      constructor(readonly locks: Holdfast) {}

      @Locked('stock')
      async take() {
        const before = this.pieces
        await new Promise(setImmediate)
        if (before > 0) this.pieces = before - 1
        return before > 0
      }
    }

    test('a locked method of a provider', async () => {
      const imports = [HoldfastModule.forRoot({ store: memory() })]
      const app = await Test.createTestingModule({ imports, providers: [Stock] }).compile()
      const stock = app.get(Stock)
      expect(stock.locks).toBeInstanceOf(Holdfast)
      expect((await Promise.all([stock.take(), stock.take()])).sort()).toEqual([false, true])
      expect(stock.pieces).toBe(0)
      await app.close()
    })`
  const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true, types: ['jest', 'node'] }
  const strict = { target: 'es2022', strict: true, skipLibCheck: true }
  const packagesOf = (nest: number): string[] => [
    ...['common', 'core', 'testing'].map((name) => `@nestjs/${name}@${nest}`),
    ...['jest@30', 'ts-jest@29', '@types/jest@30', 'typescript@5', '@types/node@20'],
    ...['reflect-metadata', 'rxjs'],
  ]

  it('NestJS 11, CommonJS', { timeout: 600_000 }, async () => {
    const project = await Project.make(
      {
        'jest.config.js': `module.exports = { preset: 'ts-jest', testEnvironment: 'node' }`,
        'tsconfig.json': {
          compilerOptions: { ...strict, module: 'commonjs', esModuleInterop: true, ...decorators },
        },
        'stock.spec.ts': spec,
      },
      packagesOf(11),
    )
    const { code, output } = await project.npx('jest')
    expect(output).toContain('Tests:       1 passed')
    expect(code, output).toBe(0)
  })

  it('NestJS 12, ES modules, with the configuration of the page', { timeout: 600_000 }, async () => {
    const page = pageOf('docs/guides/frameworks/nestjs.md').text
    const [, config = ''] = /```js\n(\/\/ jest\.config\.js[\s\S]*?)```/.exec(page) ?? []
    const project = await Project.make(
      {
        'package.json': { private: true, type: 'module' },
        'jest.config.js': config,
        'tsconfig.json': {
          compilerOptions: { ...strict, module: 'nodenext', isolatedModules: true, ...decorators },
        },
        'stock.spec.ts': spec,
      },
      packagesOf(12),
    )
    const env = { NODE_OPTIONS: '--experimental-vm-modules' }
    const { code, output } = await project.run('node_modules/.bin/jest', [], env)
    expect(output).toContain('Tests:       1 passed')
    expect(code, output).toBe(0)
  })
})

describeInFull('bundlers', () => {
  let project: Project

  beforeAll(async () => {
    project = await Project.make(
      {
        'package.json': { private: true, type: 'module' },
        'memory.js': program(`'memory:a'`),
        'redis.js': program(NO_SERVER),
        'webpack.config.cjs': `
          module.exports = {
            mode: 'production', target: 'node', entry: { memory: './memory.js', redis: './redis.js' },
            experiments: { outputModule: true, topLevelAwait: true },
            output: { path: __dirname + '/webpack', filename: '[name].mjs', chunkFormat: 'module', module: true,
              library: { type: 'module' } },
          }`,
        'rollup.config.mjs': `
          import { nodeResolve } from '@rollup/plugin-node-resolve'
          export default {
            input: ['memory.js', 'redis.js'], external: ['ioredis'],
            output: { dir: 'rollup', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
            plugins: [nodeResolve({ preferBuiltins: true })],
          }`,
        'vite.config.mjs': `
          export default {
            ssr: { noExternal: ['holdfast'], external: ['ioredis'] },
            build: { ssr: true, target: 'node20', outDir: 'vite',
              rollupOptions: { input: ['memory.js', 'redis.js'], output: { entryFileNames: '[name].mjs' } } },
          }`,
      },
      ['webpack', 'webpack-cli', 'rollup', '@rollup/plugin-node-resolve', 'esbuild', 'vite@7', 'ioredis'],
    )
  }, 300_000)

  async function expectBoth(folder: string): Promise<void> {
    expect(await project.node(`${folder}/memory.mjs`)).toEqual({ code: 0, output: 'held\n' })
    expect(await project.node(`${folder}/redis.mjs`)).toEqual({ code: 0, output: `${REFUSED}\n` })
  }

  it('webpack', { timeout: 300_000 }, async () => {
    const { code, output } = await project.npx('webpack')
    expect(code, output).toBe(0)
    await expectBoth('webpack')
  })

  it('rollup', { timeout: 300_000 }, async () => {
    const { code, output } = await project.npx('rollup', '-c')
    expect(code, output).toBe(0)
    await expectBoth('rollup')
  })

  it('vite', { timeout: 300_000 }, async () => {
    const { code, output } = await project.npx('vite', 'build')
    expect(code, output).toBe(0)
    await expectBoth('vite')
  })

  it.each(['esm', 'cjs'])('esbuild, to %s', { timeout: 300_000 }, async (format) => {
    // Top-level await is for ES modules only.
    const ending = format === 'esm' ? 'mjs' : 'cjs'
    if (format === 'cjs')
      project.write({
        'esbuild/start.js': `
          const { Holdfast } = require('holdfast')
          Holdfast.open(${NO_SERVER}).catch((error) => console.log(error.message))`,
      })
    const entries = format === 'esm' ? ['memory.js', 'redis.js'] : ['esbuild/start.js']
    const banner = `--banner:js=import { createRequire as bannerRequire } from 'node:module'; const require = bannerRequire(import.meta.url)`
    const { code, output } = await project.npx(
      'esbuild',
      ...entries,
      '--bundle',
      '--platform=node',
      `--format=${format}`,
      `--out-extension:.js=.${ending}`,
      '--outdir=esbuild/out',
      ...(format === 'esm' ? [banner] : []),
    )
    expect(code, output).toBe(0)
    if (format === 'esm') return expectBoth('esbuild/out')
    expect(await project.node('esbuild/out/start.cjs')).toEqual({ code: 0, output: `${REFUSED}\n` })
  })
})

describeInFull('a Next.js application', () => {
  it.each(['--turbopack', '--webpack'])('builds and runs with %s', { timeout: 600_000 }, async (bundler) => {
    const project = await Project.make(
      {
        'app/layout.js': `export default function Layout({ children }) { return <html><body>{children}</body></html> }`,
        'app/page.js': `
          import { Holdfast } from 'holdfast'
          export default async function Page() {
            const held = await Holdfast.open('memory:a').then(async (locks) => {
              try { return await locks.mutex('a').run(() => 'held') } finally { await locks.close() }
            })
            const said = await Holdfast.open(${NO_SERVER}).then(() => 'open', (error) => error.message)
            return <p>{'page: ' + held + ' ' + said}</p>
          }`,
      },
      ['next@16', 'react@19', 'react-dom@19', 'ioredis'],
    )
    const { code, output } = await project.run('node_modules/.bin/next', ['build', bundler], {
      NEXT_TELEMETRY_DISABLED: '1',
    })
    expect(code, output).toBe(0)
    // The page is static: it was rendered while it was built.
    const page = await project.run('cat', ['.next/server/app/index.html'])
    expect(page.output).toContain(`page: held ${REFUSED}`)
  })
})

describeInFull('TypeScript 5', () => {
  const settings = [
    { module: 'commonjs', moduleResolution: 'node10' },
    { module: 'node16', moduleResolution: 'node16' },
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ]
  let project: Project

  beforeAll(async () => {
    project = await Project.make(
      {
        'use.ts': `
          import { Holdfast, type Hold } from 'holdfast'
          import { redis } from 'holdfast/redis'
          import { memoryGuard } from 'holdfast/fence'
          import { ZooKeeperError } from 'holdfast/zookeeper/client'
          export const locks = new Holdfast(redis('redis://127.0.0.1'))
          export const work = (hold: Hold): number => hold.fence
          export const others = [memoryGuard, ZooKeeperError]`,
      },
      ['typescript@5', '@types/node@20'],
    )
  }, 300_000)

  it.each(settings)('compiles with $module and $moduleResolution', async (options) => {
    const compilerOptions = { ...options, target: 'es2022', strict: true, types: ['node'], noEmit: true }
    project.write({ 'tsconfig.json': { compilerOptions, include: ['use.ts'] } })
    expect(await project.npx('tsc', '-p', '.')).toEqual({ code: 0, output: '' })
  })
})
