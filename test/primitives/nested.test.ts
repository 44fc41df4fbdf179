import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

/**
 * A run of one side of a read-write lock, with runs inside it: one after the other, or all at once.
 */
interface Tree {
  readonly side: 'read' | 'write'
  readonly areParallel: boolean
  /** Turns of the event loop to stay before the inner runs. */
  readonly turns: number
  readonly doesDowngrade: boolean
  readonly inner: readonly Tree[]
}

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.record({
    side: fc.constantFrom('read', 'read', 'write'),
    areParallel: fc.boolean(),
    turns: fc.nat(3),
    doesDowngrade: fc.constantFrom(false, false, false, true),
    inner: fc.oneof({ maxDepth: 3 }, fc.constant([]), fc.array(tie('tree'), { maxLength: 3 })),
  }),
}))

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Who is inside, over all clients: the flows that are each in their innermost run. */
class Witness {
  readonly #inside = new Map<object, { side: 'read' | 'write'; path: readonly object[] }>()

  /** Those on the way to us have let us in; everybody else must be compatible with us. */
  enter(side: 'read' | 'write', path: readonly object[]): object {
    const me = {}
    for (const [other, { side: theirs }] of this.#inside) {
      const isAround = path.includes(other)
      if (!isAround) expect([side, theirs], 'a writer is not alone').toEqual(['read', 'read'])
    }
    this.#inside.set(me, { side, path })
    return me
  }

  becomeReader(me: object): void {
    const mine = this.#inside.get(me)
    if (mine) this.#inside.set(me, { ...mine, side: 'read' })
  }

  leave(me: object): void {
    this.#inside.delete(me)
  }
}

class Player {
  constructor(
    readonly locks: Holdfast,
    readonly witness: Witness,
  ) {}

  /** Resolves when the whole tree has been played; a refused upgrade ends its branch. */
  async play(node: Tree, path: readonly object[], around: 'none' | 'read' | 'write'): Promise<void> {
    const lock = this.locks.readWrite('config')[node.side]
    const mustRefuse = node.side === 'write' && around === 'read'
    const outcome = await lock
      .run((hold) => this.#inside(node, hold, path, mustRefuse))
      .then(
        () => 'ran',
        (error) => error.code ?? error,
      )
    expect(outcome).toBe(mustRefuse ? 'UPGRADE_REFUSED' : 'ran')
  }

  async #inside(node: Tree, hold: Hold, path: readonly object[], mustRefuse: boolean): Promise<void> {
    expect(mustRefuse, 'a reader became a writer').toBe(false)
    const me = this.witness.enter(node.side, path)
    try {
      await turns(node.turns)
      expect(hold.isValid).toBe(true)
      let { side } = node
      if (node.doesDowngrade && side === 'write') {
        side = 'read'
        this.witness.becomeReader(me)
        await hold.downgrade()
      }
      const play = (inner: Tree): Promise<void> => this.play(inner, [...path, me], side)
      if (node.areParallel) await Promise.all(node.inner.map(play))
      else for (const inner of node.inner) await play(inner)
    } finally {
      this.witness.leave(me)
    }
  }
}

describe('runs of a read-write lock inside each other', () => {
  it('keep writers alone and refuse upgrades, however they are nested, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(tree, { minLength: 1, maxLength: 4 }), async (trees) => {
        const store = memory()
        const clients = [new Holdfast(store), new Holdfast(store)]
        const witness = new Witness()
        const players = clients.map((locks) => new Player(locks, witness))
        await Promise.all(trees.map((each, index) => players[index % 2]?.play(each, [], 'none')))
        for (const locks of clients)
          for await (const resource of locks.inspect()) expect(resource).toBeUndefined()
        await Promise.all(clients.map((locks) => locks.close({ drain: 0 })))
      }),
      { numRuns: 1000 },
    )
  }, 120_000)
})
