/** Lets many tests share one schema: each has spaces of its own. Also for other processes, which get everything in a URL. */
import { postgres } from 'holdfast/postgres'

/** A store whose spaces all begin with `prefix`. */
export function spaced(store, prefix) {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect: (client) => store.connect({ ...client, space: `${prefix}${client.space}` }),
  }
}

/** The URL of a store, with the prefix after `#`. */
export default function open(url) {
  const [address, prefix] = url.split('#')
  return spaced(postgres(address), prefix)
}
