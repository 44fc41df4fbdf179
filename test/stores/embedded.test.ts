import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { type Client, connect, request, tempFolder } from './sqlite/helpers.js'

/** Two clients each: of one store value, or of two that share a file as two processes do. */
const PAIRS: Record<string, () => [Client, Client]> = {
  memory: () => pairOf(memory()),
  'SQLite, one store value': () => pairOf(sqlite(tempFolder().path('locks.db'))),
  'SQLite, two store values': () => {
    const path = tempFolder().path('locks.db')
    return [connect(sqlite(path)), connect(sqlite(path))]
  },
}

function pairOf(store: Store): [Client, Client] {
  return [connect(store), connect(store)]
}

describe.each(Object.entries(PAIRS))('a try on %s', (_name, clients) => {
  const busy = { status: 'refused', reason: 'busy' }

  it('that is refused tells the holder of a block of fences that it is wanted', async () => {
    const [holder, other] = clients()
    await holder.claim(request('door', 'h', { block: 8 }))
    expect(await other.claim(request('door', 't', { mode: 'try' }))).toEqual(busy)
    await holder.told('wanted')
    expect(holder.news).toEqual([{ type: 'wanted', resource: 'door', id: 'h' }])
  })

  it('that is refused a second time tells it again', async () => {
    const [holder, other] = clients()
    await holder.claim(request('door', 'h', { block: 8 }))
    await other.claim(request('door', 't1', { mode: 'try' }))
    await holder.told('wanted')
    holder.news.length = 0
    await other.claim(request('door', 't2', { mode: 'try' }))
    await holder.told('wanted')
  })

  it('tells nobody where the lock is free, or where the holder has a single fence', async () => {
    const [holder, other] = clients()
    expect(await other.claim(request('free', 't0', { mode: 'try' }))).toMatchObject({ status: 'granted' })
    await holder.claim(request('single', 'h1'))
    expect(await other.claim(request('single', 't1', { mode: 'try' }))).toEqual(busy)
    // Pushes arrive in order: what was pushed before this one would be here, too.
    await holder.claim(request('door', 'h2', { block: 8 }))
    expect(await other.claim(request('door', 't2', { mode: 'try' }))).toEqual(busy)
    await holder.told('wanted')
    expect(holder.news).toEqual([{ type: 'wanted', resource: 'door', id: 'h2' }])
    expect(other.news).toEqual([])
  })
})

describe('tellsWanted', () => {
  it('is true in memory', () => {
    expect(memory().capabilities.tellsWanted).toBe(true)
  })

  it('is true in SQLite while other processes can reach the clients', async () => {
    const store = sqlite(tempFolder().path('locks.db'))
    const client = connect(store)
    await client.claim(request('door', 'h', { block: 8 }))
    expect(store.capabilities.tellsWanted).toBe(true)
    await client.close()
    expect(store.capabilities.tellsWanted).toBe(false)
  })

  it('is false in SQLite where no socket can be made', async () => {
    const path = tempFolder().path('locks.db')
    writeFileSync(`${path}-wires`, 'in the way')
    const store = sqlite(path)
    await connect(store).claim(request('door', 'h', { block: 8 }))
    expect(store.capabilities.tellsWanted).toBe(false)
  })
})
