import { setTimeout } from 'node:timers/promises'
import type { Store } from '../../../src/contract/store.js'

/**
 * The store, but each client is heard before its first claim. Without this, one that is robbed in its first millisecond is told `gap` in place
 * of `lost`, which is fine in life, but not what the model says.
 */
export function heard(store: Store): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const inner = store.connect(client)
      let listening: Promise<void> | undefined
      const listen = async (): Promise<void> => {
        await inner.read('nobody writes this', true)
        while (store.capabilities.askNextEveryMs !== null) await setTimeout(1)
      }
      return {
        async claim(request) {
          listening ??= listen()
          await listening
          return inner.claim(request)
        },
        pulse: (beats) => inner.pulse(beats),
        release: (resource, id) => inner.release(resource, id),
        evict: (resource, fence) => inner.evict(resource, fence),
        cancel: (resource, id) => inner.cancel(resource, id),
        resize: (resource, declared, capacity) => inner.resize(resource, declared, capacity),
        read: (key, watch) => inner.read(key, watch),
        write: (change) => inner.write(change),
        states: (prefix) => inner.states(prefix),
        inspect: (query) => inner.inspect(query),
        close: () => inner.close(),
      }
    },
  }
}
