import type { Env } from '../../base/env.js'
import { MemcachedError } from '../../drivers/memcached/index.js'
import { explain } from './failures.js'
import type { MemcachedNode } from './node.js'

/** How many items are asked for in one packet. */
const PAGE = 100
/** A server walks through its keys for one client at a time. */
const MOST_ATTEMPTS = 200
const LONGEST_PAUSE_MS = 50

/** The items of a server whose keys begin so. The server walks through all of its keys. */
export async function* itemsOf(node: MemcachedNode, start: string, env: Env): AsyncIterable<string> {
  const keys = (await allKeys(node, env)).filter((key) => key.startsWith(start))
  for (let at = 0; at < keys.length; at += PAGE) {
    const page = keys.slice(at, at + PAGE)
    const replies = await Promise.all(page.map((key) => node.get(key, 'v'))).catch(rethrow)
    for (const { status, value } of replies) if (status === 'VA') yield value
  }
}

async function allKeys(node: MemcachedNode, env: Env): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await node.server.keys()
    } catch (error) {
      const isBusy = error instanceof MemcachedError && error.message.includes('BUSY')
      if (!isBusy || attempt >= MOST_ATTEMPTS) throw explain(error)
    }
    await new Promise<void>((resolve) => {
      env.timer(env.random() * LONGEST_PAUSE_MS, resolve, { keepAlive: false })
    })
  }
}

function rethrow(error: unknown): never {
  throw explain(error)
}
