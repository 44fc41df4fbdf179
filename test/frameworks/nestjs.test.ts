import 'reflect-metadata'
import { Injectable, Module, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  getHoldfastToken,
  HoldfastHealthIndicator,
  HoldfastModule,
  InjectHoldfast,
  Locked,
  OncePerCluster,
} from '../../src/nestjs/index.js'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

interface MetadataReflect {
  decorate(
    decorators: unknown[],
    target: object,
    key: string,
    descriptor: PropertyDescriptor,
  ): PropertyDescriptor
  defineMetadata(key: string, value: unknown, target: object): void
}
const reflect = Reflect as unknown as MetadataReflect

/** Does what the compiler does for a method with decorators; the test runner does not know them. */
function decorate(type: Type, method: string, ...decorators: unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method) as PropertyDescriptor
  Object.defineProperty(
    type.prototype,
    method,
    reflect.decorate(decorators, type.prototype, method, descriptor),
  )
}

async function start(imports: unknown[], providers: Type[] = []) {
  class App {}
  Module({ imports: imports as never[], providers })(App)
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false })
  onTestFinished(() => app.close())
  return app
}

/** Without a drain: some tests leave holds behind. */
const inMemory = (more: object = {}) => HoldfastModule.forRoot({ store: memory(), drain: 0, ...more })

function ordersWith(...decorators: unknown[]) {
  class Orders {
    readonly seen: unknown[] = []
    async pay(id?: unknown): Promise<unknown> {
      this.seen.push(id)
      return id
    }
  }
  Injectable()(Orders)
  decorate(Orders, 'pay', ...decorators)
  return Orders
}

describe('@Locked', () => {
  it('runs the method in the mutex that its arguments name, with its own this', async () => {
    const Orders = ordersWith(Locked((id: string) => `order:${id}`, { wait: 0 }))
    const app = await start([inMemory()], [Orders])
    const orders = app.get(Orders)
    const hold = await app.get(Holdfast).mutex('order:7').acquire()
    await expect(orders.pay('7')).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT', resource: 'order:7' })
    expect(await orders.pay('8')).toBe('8')
    await hold.release()
    expect(await orders.pay('7')).toBe('7')
    expect(orders.seen).toEqual(['8', '7'])
  })

  it('uses the client of the application that the object belongs to', async () => {
    const Orders = ordersWith(Locked('order', { wait: 0 }))
    const [one, other] = await Promise.all([1, 2].map(() => start([inMemory()], [Orders])))
    await one?.get(Holdfast).mutex('order').acquire()
    await expect(one?.get(Orders).pay()).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
    expect(await other?.get(Orders).pay(1)).toBe(1)
  })

  it('uses the client that it names, also in a class that extends another', async () => {
    const Orders = ordersWith(Locked('order', { wait: 0 }))
    class Special extends Orders {
      async refund(): Promise<string> {
        return 'refunded'
      }
    }
    Injectable()(Special)
    decorate(Special, 'refund', Locked('order', { client: 'billing', wait: 0 }))
    const app = await start([inMemory(), inMemory({ name: 'billing' })], [Special])
    await app.get<Holdfast>(getHoldfastToken('billing')).mutex('order').acquire()
    expect(await app.get(Special).pay(1)).toBe(1)
    await expect(app.get(Special).refund()).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  })

  it('keeps the metadata of decorators below it', () => {
    const Orders = ordersWith(
      Locked('order'),
      (_target: object, _key: string, descriptor: PropertyDescriptor) =>
        reflect.defineMetadata('route', '/pay', descriptor.value),
    )
    expect(Reflect.getMetadata('route', Orders.prototype.pay)).toBe('/pay')
  })

  it('keeps the name of the method: rate limiters count by it', () => {
    expect(ordersWith(Locked('order')).prototype.pay.name).toBe('pay')
    expect(ordersWith(OncePerCluster('order', { atLeast: 1, atMost: 10 })).prototype.pay.name).toBe('pay')
  })

  it('refuses wrong names and options where the class is defined', () => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
    expect(() => Locked('')).toThrow(refused)
    expect(() => Locked('a', { wiat: 1 } as object)).toThrow(refused)
    expect(() => OncePerCluster('', { atLeast: 1, atMost: 10 })).toThrow(refused)
    expect(() => OncePerCluster('a', { atLeast: '1m' } as never)).toThrow(refused)
    expect(() => Locked('a')({}, 'list', { value: 1 } as never)).toThrow('is for methods')
    expect(() => Locked('a')(class {}, 'list', { value: async () => {} } as never)).toThrow('is for methods')
  })

  it('rejects on an object that Nest has not made', async () => {
    const Orders = ordersWith(Locked('order'))
    await expect(new Orders().pay()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('does not let an application start without its client', async () => {
    const Orders = ordersWith(Locked('order', { client: 'nowhere' }))
    await expect(start([inMemory()], [Orders])).rejects.toThrow(/holdfast.client.nowhere/)
  })
})

describe('@OncePerCluster', () => {
  it('runs in one of two applications, with the hold as its argument', async () => {
    const Jobs = ordersWith(OncePerCluster('job', { atLeast: '1h', atMost: '1h' }))
    const store = memory()
    const nodes = await Promise.all([1, 2].map(() => start([HoldfastModule.forRoot({ store })], [Jobs])))
    const results = await Promise.all(nodes.flatMap((app) => [1, 2, 3].map(() => app.get(Jobs).pay('x'))))
    const holds = results.filter((result) => result !== undefined) as Hold[]
    expect(holds).toHaveLength(1)
    expect(holds[0]?.fence).toBeGreaterThan(0)
    expect(nodes.flatMap((app) => app.get(Jobs).seen)).toEqual(holds)
  })

  it('leaves a tick that comes when the application ends to others, without an error', async () => {
    const Jobs = ordersWith(OncePerCluster('job', { atLeast: '1h', atMost: '1h' }))
    const app = await start([inMemory()], [Jobs])
    const jobs = app.get(Jobs)
    await app.close()
    expect(await jobs.pay('x')).toBeUndefined()
    expect(jobs.seen).toEqual([])
  })
})

describe('HoldfastModule', () => {
  it('closes its clients when the application ends, after the hooks of other modules', async () => {
    const order: string[] = []
    class Pool {
      onApplicationShutdown() {
        order.push('pool')
      }
    }
    class PoolModule {}
    Module({ providers: [Pool], exports: [Pool] })(PoolModule)
    class Work {
      locks: Holdfast
      constructor(locks: Holdfast) {
        this.locks = locks
      }
      onApplicationShutdown() {
        order.push('work')
      }
    }
    Injectable()(Work)
    InjectHoldfast()(Work, undefined as never, 0)
    const module = HoldfastModule.forRootAsync({
      isGlobal: false,
      imports: [PoolModule],
      inject: [Pool],
      useFactory: async (pool: Pool) => {
        expect(pool).toBeInstanceOf(Pool)
        return { store: memory(), drain: 0 }
      },
    })
    const app = await start([module], [Work])
    const hold = await app.get(Work).locks.mutex('a').acquire()
    hold.signal.addEventListener('abort', () => order.push('locks'))
    await app.close()
    expect(order).toEqual(['work', 'locks', 'pool'])
    await expect(app.get(Holdfast).mutex('a').acquire()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('is global and ends last, unless told otherwise', async () => {
    const order: string[] = []
    class Deep {
      locks: Holdfast
      constructor(locks: Holdfast) {
        this.locks = locks
      }
      onApplicationShutdown() {
        order.push('deep')
      }
    }
    Injectable()(Deep)
    InjectHoldfast()(Deep, undefined as never, 0)
    class DeepModule {}
    Module({ providers: [Deep] })(DeepModule)
    const app = await start([inMemory(), DeepModule])
    const hold = await app.get(Deep, { strict: false }).locks.mutex('a').acquire()
    hold.signal.addEventListener('abort', () => order.push('locks'))
    await app.close()
    expect(order).toEqual(['deep', 'locks'])
    await expect(start([inMemory({ isGlobal: false }), DeepModule])).rejects.toThrow(
      /dependencies of the Deep/,
    )
  })

  it('refuses wrong options', async () => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
    expect(() => HoldfastModule.forRoot(undefined as never)).toThrow(refused)
    expect(() => HoldfastModule.forRoot({ store: memory(), name: '' })).toThrow(refused)
    expect(() => HoldfastModule.forRootAsync({} as never)).toThrow(refused)
    expect(() => HoldfastModule.forRootAsync({ useFactroy: 1 } as never)).toThrow(refused)
    await expect(start([inMemory({ spce: 'a' })])).rejects.toThrow(refused)
    await expect(start([HoldfastModule.forRoot({ store: 'nowhere:a' })])).rejects.toThrow(refused)
  })
})

describe('HoldfastHealthIndicator', () => {
  it('reports the client that is named, and a closed one as down', async () => {
    const app = await start([inMemory(), inMemory({ name: 'billing' })])
    const health = app.get(HoldfastHealthIndicator)
    const up = { status: 'up', ms: expect.any(Number) }
    expect(await health.pingCheck('a')).toEqual({ a: up })
    await app.get<Holdfast>(getHoldfastToken('billing')).close()
    const down = { status: 'down', code: 'CLOSED', message: expect.any(String) }
    expect(await health.pingCheck('b', { client: 'billing' })).toEqual({ b: down })
    await expect(health.pingCheck('a', { timeout: 'soon' as never })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })
})
