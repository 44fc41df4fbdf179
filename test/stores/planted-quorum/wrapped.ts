import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClientContext,
  Connection,
  Push,
  Store,
} from '../../../src/contract/store.js'

/** What a wrapped store does otherwise than the real one. All of it is optional. */
export interface Change {
  claim?(inner: Connection, request: ClaimRequest): ClaimReply | Promise<ClaimReply>
  pulse?(inner: Connection, beats: readonly Beat[]): Promise<BeatReply[]>
  release?(inner: Connection, resource: string, id: string): boolean | Promise<boolean>
  push?(news: Push): Push
}

/** The store, but each connection behaves as `change` says. */
export function wrapped(store: Store, change: (client: ClientContext) => Change): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const changed = change(client)
      const push = (news: Push): void => client.push(changed.push?.(news) ?? news)
      const inner = store.connect({ ...client, push })
      return new Proxy(inner, {
        get(target, key) {
          const own = Reflect.get(changed, key)
          if (own && key !== 'push') return (...args: unknown[]) => own(inner, ...args)
          const value = Reflect.get(target, key)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
  }
}
