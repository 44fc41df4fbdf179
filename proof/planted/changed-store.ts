import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClientContext,
  Connection,
  Push,
  Store,
} from '../../src/contract/store.js'

/** What a changed store does in place of the real one. What is left out stays as it is. */
export interface Change {
  claim?(inner: Connection, request: ClaimRequest): ClaimReply | Promise<ClaimReply>
  pulse?(inner: Connection, beats: readonly Beat[]): Promise<BeatReply[]>
  release?(inner: Connection, resource: string, id: string): boolean | Promise<boolean>
  /** null: the client does not get it. */
  push?(news: Push): Push | null
}

/** The store, but each connection behaves as the change says; a function gives that of a client. */
export function changedStore(store: Store, given: Change | ((client: ClientContext) => Change)): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client: ClientContext): Connection {
      const change = typeof given === 'function' ? given(client) : given
      const push = (news: Push): void => {
        const told = change.push ? change.push(news) : news
        if (told) client.push(told)
      }
      const inner = store.connect({ ...client, push })
      return new Proxy(inner, {
        get(target, key) {
          const own: unknown = key === 'push' ? undefined : Reflect.get(change, key)
          if (typeof own === 'function') return (...args: unknown[]) => own.call(change, inner, ...args)
          const value: unknown = Reflect.get(target, key)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
  }
}

/** Answers the beats one by one: with what `answer` gives, or with the store's own reply. */
export async function pulseEach(
  inner: Connection,
  beats: readonly Beat[],
  answer: (beat: Beat, reply: BeatReply) => BeatReply | Promise<BeatReply>,
): Promise<BeatReply[]> {
  const replies = await inner.pulse(beats)
  return Promise.all(replies.map((reply, index) => answer(beats[index] as Beat, reply)))
}
