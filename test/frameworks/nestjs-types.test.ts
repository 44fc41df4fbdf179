import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../project/sources.js'

/** Inside the package, so that `import 'holdfast'` leads to its own build. */
const folder = join(root, `.cache/nestjs-types-${process.pid}`)

const CODE = `
import type { Hold } from 'holdfast'
import { HoldfastModule, InjectHoldfast, Locked, OncePerCluster } from 'holdfast/nestjs'
import { memory } from 'holdfast/memory'

const often = { atLeast: '1m', atMost: '1h' } as const

export class Accepted {
  @InjectHoldfast() readonly locks: unknown

  @Locked((id: string) => id, { client: undefined, wait: '5s' })
  async fewer(_id: string, _amount: number) {}

  @Locked((id) => String(id))
  async untyped(_id: string) {}

  @Locked('fixed')
  async fixed() {
    return 1
  }

  @OncePerCluster('a', often)
  async nothing() {}

  @OncePerCluster('a', often)
  async perhaps(_hold?: Hold) {}

  @OncePerCluster('a', { ...often, client: 'billing' })
  async hold(hold: Hold) {
    if (hold.isValid) return 'done'
    return undefined
  }
}

export class Refused {
  // @ts-expect-error: the method's first argument is a number
  @Locked((id: string) => id)
  async otherType(_id: number) {}

  // @ts-expect-error: the method returns no promise
  @Locked('fixed')
  sync() {}

  // @ts-expect-error: a misspelled option
  @Locked('fixed', { wiat: '5s' })
  async misspelled() {}

  // @ts-expect-error: its argument is the hold
  @OncePerCluster('a', often)
  async argument(_id: string) {}

  // @ts-expect-error: where it does not run, there is no number
  @OncePerCluster('a', often)
  async always() {
    return 1
  }
}

HoldfastModule.forRoot({ store: memory(), name: undefined, isGlobal: undefined, drain: undefined })
HoldfastModule.forRootAsync({ imports: undefined, inject: [], useFactory: async () => ({ store: 'memory:' }) })
// @ts-expect-error: no store
HoldfastModule.forRoot({ drain: '5s' })
`

it('the decorators and the module accept what is right, and nothing else', () => {
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(join(folder, 'code.ts'), CODE)
    const compilerOptions = { noEmit: true, experimentalDecorators: true, emitDecoratorMetadata: true }
    const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['code.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    let output = ''
    try {
      execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8', stdio: 'pipe' })
    } catch (error) {
      output = (error as { stdout: string }).stdout
    }
    expect(output).toBe('')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
