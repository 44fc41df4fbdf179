import type { ClaimRequest, ClientContext, Connection, Store } from '../../../src/contract/store.js'

/**
 * A store as a client on that host has it: its claims name the host. Everything else is the real
 * store's.
 */
export function onHost(store: Store, host: string): Store {
  return passing(store, {
    connect: (client: ClientContext) => {
      const connection = store.connect(client)
      const claim = (request: ClaimRequest) => connection.claim({ ...request, info: withHost(request, host) })
      return passing<Connection>(connection, { claim })
    },
  })
}

function withHost({ info }: ClaimRequest, host: string): string {
  return JSON.stringify({ ...JSON.parse(info), host })
}

function passing<T extends object>(target: T, instead: Partial<T>): T {
  return new Proxy(target, {
    get(_, key) {
      if (Object.hasOwn(instead, key)) return Reflect.get(instead, key)
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
