import type { FactoryProvider, ModuleMetadata } from '@nestjs/common'
import type { Store } from '../contract/store.js'
import type { HoldfastOptions } from '../primitives/holdfast.js'

/** The client that a module makes: its store, and the options of a client. */
export interface HoldfastClientOptions extends HoldfastOptions {
  /**
   * The store, or its URL: `sqlite('./locks.db')`, `'redis://localhost'`. With a URL the
   * application starts when the store has answered.
   */
  store: Store | string
}

/** How Nest provides the client. */
export interface HoldfastProviderOptions {
  /**
   * The name of the client, for `@InjectHoldfast(name)` and the option `client` of the decorators.
   * Default: none, and the client is injected by its type.
   */
  name?: string | undefined
  /**
   * Whether all modules can inject the client. Nest ends global modules last. Set it to false if
   * another module owns the pool of the store, and import that module. Default: true.
   */
  isGlobal?: boolean | undefined
}

/** The options of `HoldfastModule.forRoot`. */
export interface HoldfastModuleOptions extends HoldfastClientOptions, HoldfastProviderOptions {}

/** The options of `HoldfastModule.forRootAsync`. */
export interface HoldfastModuleAsyncOptions extends HoldfastProviderOptions {
  /** The modules that export what the factory needs. */
  imports?: ModuleMetadata['imports']
  /** The arguments of the factory, by their tokens. */
  inject?: FactoryProvider['inject']
  /** Returns the store and the options of the client, or a promise of them. */
  // biome-ignore lint/suspicious/noExplicitAny: Nest passes what the tokens in `inject` stand for
  useFactory: (...args: any[]) => HoldfastClientOptions | Promise<HoldfastClientOptions>
}
