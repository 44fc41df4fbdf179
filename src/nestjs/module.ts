import { type DynamicModule, Module } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import { invalid } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { Holdfast } from '../primitives/holdfast.js'
import { HoldfastHealthIndicator } from './health.js'
import type { HoldfastClientOptions, HoldfastModuleAsyncOptions, HoldfastModuleOptions } from './options.js'
import { ClientShutdown } from './shutdown.js'
import { getHoldfastToken } from './tokens.js'

/**
 * Provides a client to a NestJS application, and closes it with its drain when the application
 * ends. Call `app.enableShutdownHooks()`, so that a signal ends the application. See
 * `docs/guides/frameworks/nestjs.md`.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common'
 * import { HoldfastModule } from 'holdfast/nestjs'
 *
 * @Module({
 *   imports: [HoldfastModule.forRoot({ store: 'sqlite:./locks.db', drain: '20s' })],
 * })
 * export class AppModule {}
 * ```
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class HoldfastModule {
  /**
   * A module with a client. For several clients, import it several times, and give all but one a
   * `name`.
   *
   * @example
   * ```ts
   * import { HoldfastModule } from 'holdfast/nestjs'
   * import { memory } from 'holdfast/memory'
   *
   * export const imports = [
   *   HoldfastModule.forRoot({ store: 'sqlite:./locks.db' }),
   *   HoldfastModule.forRoot({ store: memory(), name: 'local' }),
   * ]
   * ```
   */
  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    const { name, isGlobal, ...client } = checkObject(options)
    return HoldfastModule.forRootAsync({ name, isGlobal, useFactory: () => client })
  }

  /**
   * The same, with options that other providers know.
   *
   * @example
   * ```ts
   * import { Module } from '@nestjs/common'
   * import { HoldfastModule } from 'holdfast/nestjs'
   *
   * class Settings {
   *   readonly locks = 'sqlite:./locks.db'
   * }
   *
   * @Module({ providers: [Settings], exports: [Settings] })
   * class SettingsModule {}
   *
   * export const locks = HoldfastModule.forRootAsync({
   *   imports: [SettingsModule],
   *   inject: [Settings],
   *   useFactory: (settings: Settings) => ({ store: settings.locks, space: 'shop' }),
   * })
   * ```
   */
  static forRootAsync(options: HoldfastModuleAsyncOptions): DynamicModule {
    const {
      name,
      isGlobal = true,
      imports = [],
      inject = [],
      useFactory,
    } = checkOptions(
      options,
      { name: true, isGlobal: true, imports: true, inject: true, useFactory: true },
      "{ useFactory: () => ({ store: 'sqlite:./locks.db' }) }",
    )
    if (typeof useFactory !== 'function') throw invalid('forRootAsync() needs useFactory, a function')
    const token = getHoldfastToken(name)
    return {
      module: HoldfastModule,
      global: isGlobal,
      imports,
      providers: [
        { provide: token, useFactory: async (...args) => openClient(await useFactory(...args)), inject },
        { provide: ClientShutdown, useFactory: (locks) => new ClientShutdown(locks), inject: [token] },
        {
          provide: HoldfastHealthIndicator,
          useFactory: (ref) => new HoldfastHealthIndicator(ref),
          inject: [ModuleRef],
        },
      ],
      exports: [token, HoldfastHealthIndicator],
    }
  }
}

Module({})(HoldfastModule)

function openClient(options: HoldfastClientOptions): Promise<Holdfast> | Holdfast {
  const { store, ...client } = checkObject(options)
  return typeof store === 'string' ? Holdfast.open(store, client) : new Holdfast(store, client)
}

function checkObject<T extends object>(options: T): T {
  if (typeof options !== 'object' || options === null)
    throw invalid("The options must be an object, such as { store: 'sqlite:./locks.db' }")
  return options
}
