import { Holdfast } from '../primitives/holdfast.js'
import type { LockContext } from '../primitives/reentry.js'
import { Poller } from './poller.js'
import { Problem } from './problems.js'
import { SpaceFeed } from './space-feed.js'

/** How long a list of spaces is used before the store is asked again. */
const LIST_FOR_MS = 5000
/** The most spaces with a client of their own. Beyond that, one that nobody watches is closed. */
const MOST_OPEN = 50

/** A space that somebody looks at: its client, its poller, its streams. */
export interface Space {
  readonly name: string
  readonly locks: Holdfast
  readonly context: LockContext
  readonly poller: Poller
  readonly feed: SpaceFeed
}

/** The spaces of one store. The first one belongs to the client that the user gave. */
export class Spaces {
  readonly home: Space
  readonly #ownsHome: boolean
  /** The one that was used last comes last. */
  readonly #open = new Map<string, Space>()
  #listed: { readonly at: number; readonly names: Promise<string[] | null> } | null = null

  constructor(home: Holdfast, ownsHome: boolean) {
    this.home = spaceOf(home)
    this.#ownsHome = ownsHome
  }

  /** The space of that name; null: the first one. */
  async of(name: string | null): Promise<Space> {
    if (name === null || name === '' || name === this.home.name) return this.home
    const known = this.#open.get(name)
    if (known) {
      this.#open.delete(name)
      this.#open.set(name, known)
      return known
    }
    if (!(await this.list())?.includes(name)) throw new Problem('NOT_FOUND', 'There is no such space')
    return this.#open.get(name) ?? this.#add(name)
  }

  /** All spaces of the store, also the first one if it is empty; null: it cannot list them. */
  async list(): Promise<string[] | null> {
    const { env, connection } = this.home.context.engine
    if (!connection.spaces) return null
    const isOld = this.#listed === null || env.now() - this.#listed.at > LIST_FOR_MS
    if (isOld) this.#listed = { at: env.now(), names: this.home.locks.spaces() }
    try {
      const names = (await this.#listed?.names) ?? []
      return [...new Set([this.home.name, ...names])].sort()
    } catch (error) {
      this.#listed = null
      throw error
    }
  }

  all(): Space[] {
    return [this.home, ...this.#open.values()]
  }

  async close(): Promise<void> {
    for (const { poller } of this.all()) poller.close()
    const own = [...this.#open.values(), ...(this.#ownsHome ? [this.home] : [])]
    await Promise.all(own.map(({ locks }) => locks.close({ drain: 0 })))
  }

  #add(name: string): Space {
    const { store, env, calls } = this.home.context.engine
    const space = spaceOf(new Holdfast(store, { space: name, env, storeTimeout: calls.storeTimeoutMs }))
    this.#open.set(name, space)
    const idle = [...this.#open.values()].find((each) => each !== space && isIdle(each))
    if (this.#open.size > MOST_OPEN && idle) {
      this.#open.delete(idle.name)
      idle.poller.close()
      void idle.locks.close({ drain: 0 }).catch(() => {})
    }
    return space
  }
}

/** Whether nobody watches it, and no request of the lock API waits in it. */
function isIdle({ feed, context }: Space): boolean {
  return feed.isEmpty && context.engine.leases.size === 0
}

function spaceOf(locks: Holdfast): Space {
  const context = Holdfast.contextOf(locks)
  const poller = new Poller(context.engine.env, context.operator)
  return { name: context.engine.space, locks, context, poller, feed: new SpaceFeed(poller) }
}
