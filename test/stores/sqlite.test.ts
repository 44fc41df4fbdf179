import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { decodeText, encodeText } from '../../src/base/text.js'
import type { Connection, LineView } from '../../src/contract/store.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { ask, beat, connect, openRaw, request, tempFolder } from './sqlite/helpers.js'

const STRANGE_NAMES = [
  'a\0b',
  'a',
  'a\\0b',
  '\\',
  '\\\\',
  '\0',
  'ключ/🔑',
  'e\u0301',
  '\u00e9',
  "'; DROP TABLE claim; --",
  '\x01',
]

async function views(connection: Connection, prefix = ''): Promise<LineView[]> {
  const found: LineView[] = []
  for await (const view of connection.inspect({ prefix })) found.push(view)
  return found
}

describe('text in the file', () => {
  it('comes back as it was, without a NUL on the way', () => {
    for (const text of [...STRANGE_NAMES, '\ud800', 'x\udfffy', '\ud83d\ude00', '\\ud800', '']) {
      expect(decodeText(encodeText(text))).toBe(text)
      expect(encodeText(text)).not.toContain('\0')
      expect(encodeText(text).isWellFormed()).toBe(true)
    }
  })
})

describe('the SQLite store', () => {
  it('keeps every name, info and state apart, whatever is in it', async () => {
    const store = sqlite(tempFolder().path('locks.db'))
    const client = connect(store, { space: 'sp\0ace\\' })
    for (const [index, name] of STRANGE_NAMES.entries()) {
      expect(await client.claim(request(name, `id\0${index}`, { info: name }))).toMatchObject({
        status: 'granted',
      })
      expect(await client.write({ key: name, expect: null, value: name, retentionMs: null })).toMatchObject({
        written: true,
      })
    }
    const seen = await views(client)
    expect(seen.map((view) => view.resource).sort()).toEqual([...STRANGE_NAMES].sort())
    for (const { resource, claims } of seen) expect(claims.map((claim) => claim.info)).toEqual([resource])
    for (const name of STRANGE_NAMES) expect(await client.read(name, false)).toMatchObject({ value: name })
    expect(await views(connect(store, { space: 'sp' }))).toEqual([])
    for (const [index, name] of STRANGE_NAMES.entries())
      expect(await client.release(name, `id\0${index}`)).toBe(true)
  })

  it('lists by prefix and by name', async () => {
    const client = connect(sqlite(tempFolder().path('locks.db')))
    const names = ['a', 'a:', 'a:1', 'a:1\0', 'a:\\', 'a:\uffff', 'a;', 'b']
    for (const name of names) await client.claim(request(name, 'x'))
    for (const prefix of ['', 'a', 'a:', 'a:1', 'a:\\', 'c']) {
      const found = (await views(client, prefix)).map((view) => view.resource)
      expect(found.sort()).toEqual(names.filter((name) => name.startsWith(prefix)).sort())
    }
    const exactly: LineView[] = []
    for await (const view of client.inspect({ prefix: '', resource: 'a:1' })) exactly.push(view)
    expect(exactly.map((view) => view.resource)).toEqual(['a:1'])
  })

  it('hands over between clients of one store value', async () => {
    const folder = tempFolder()
    const store = sqlite(folder.path('locks.db'))
    const [one, two] = [connect(store), connect(store)]
    await one.claim(request('r', '1'))
    expect(await two.claim(request('r', '2'))).toMatchObject({ status: 'waiting', isNext: true })
    await one.release('r', '1')
    expect(two.news).toMatchObject([{ type: 'granted', resource: 'r', id: '2' }])
  })

  it('hands over between two store values of one process', async () => {
    const path = tempFolder().path('locks.db')
    const [one, two] = [connect(sqlite(path)), connect(sqlite(path))]
    const first = await one.claim(request('r', '1'))
    await two.claim(request('r', '2'))
    await one.release('r', '1')
    const granted = await two.told('granted')
    expect(granted).toMatchObject({ type: 'granted', resource: 'r', id: '2' })
    expect(granted).toHaveProperty('fence')
    expect((granted as { fence: number }).fence).toBeGreaterThan((first as { fence: number }).fence)
  })

  it('tells a watcher in another store value, once', async () => {
    const path = tempFolder().path('locks.db')
    const [writer, watcher] = [connect(sqlite(path)), connect(sqlite(path))]
    expect(await watcher.read('k', true)).toBeNull()
    const { current } = await writer.write({ key: 'k', expect: null, value: '1', retentionMs: null })
    expect(await watcher.told('state')).toEqual({ type: 'state', key: 'k' })
    await writer.write({ key: 'k', expect: current?.version ?? null, value: '2', retentionMs: null })
    expect(watcher.news).toHaveLength(1)
  })

  it('works where no socket can be made', async () => {
    const folder = tempFolder()
    const path = folder.path('locks.db')
    const { writeFileSync } = await import('node:fs')
    // Where the folder of sockets should be, there is a file.
    writeFileSync(`${path}-wires`, '')
    const [one, two] = [connect(sqlite(path)), connect(sqlite(path))]
    await one.claim(request('r', '1'))
    expect(await two.claim(request('r', '2'))).toMatchObject({ status: 'waiting' })
    await one.release('r', '1')
    expect(await two.pulse([beat('r', '2')])).toMatchObject([{ status: 'held' }])
  })

  it('listens as soon as it has a claim, and leaves nothing behind', async () => {
    const folder = tempFolder()
    const path = folder.path('locks.db')
    const [one, two] = [connect(sqlite(path)), connect(sqlite(path))]
    await one.pulse([])
    expect(existsSync(`${path}-wires`)).toBe(false)
    await one.claim(request('r', '1'))
    await two.claim(request('r', '2'))
    expect(readdirSync(`${path}-wires`)).toHaveLength(2)
    await one.close()
    await two.close()
    expect(existsSync(`${path}-wires`)).toBe(false)
  })

  it('writes nothing for a refused claim', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.claim(request('r', '1'))
    const raw = await openRaw(path)
    const before = ask(raw, 'PRAGMA data_version')
    for (let index = 0; index < 10; index += 1)
      expect(await client.claim(request('r', 'x', { mode: 'try' }))).toMatchObject({ status: 'refused' })
    expect(ask(raw, 'PRAGMA data_version')).toBe(before)
  })
})

describe('the size of the file', () => {
  it('does not grow with the names that were ever used', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    const raw = await openRaw(path)
    const use = async (from: number, to: number): Promise<number> => {
      const names = Array.from({ length: to - from }, (_, index) => `name:${from + index}`)
      for (let start = 0; start < names.length; start += 100) {
        const some = names.slice(start, start + 100)
        await Promise.all(some.map((name) => client.claim(request(name, name))))
        await Promise.all(some.map((name) => client.release(name, name)))
      }
      return Number(ask(raw, 'PRAGMA page_count'))
    }
    const early = await use(0, 1000)
    expect(await use(1000, 20_000)).toBeLessThanOrEqual(early + 2)
  })
})

describe('a long line', () => {
  it('is served in order, at a cost that does not grow with its length', async () => {
    const client = connect(sqlite(tempFolder().path('locks.db')))
    const long = { leaseMs: 3_600_000, presenceMs: 3_600_000 }
    await client.claim(request('r', '0', long))
    const ids = Array.from({ length: 10_000 }, (_, index) => String(index + 1))
    const replies = await Promise.all(ids.map((id) => client.claim(request('r', id, long))))
    expect(replies.every((reply) => reply.status === 'waiting')).toBe(true)

    /** Gives how long it takes in the middle, which does not change if the process stands still now and then. */
    const serve = async (from: number, to: number): Promise<number> => {
      const times: number[] = []
      for (let id = from; id < to; id += 1) {
        const start = performance.now()
        await client.release('r', String(id))
        times.push(performance.now() - start)
      }
      return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Infinity
    }
    const whileLong = await serve(0, 1000)
    await serve(1000, 9000)
    const whileShort = await serve(9000, 10_000)
    console.log(
      `release in a line of 10,000: ${whileLong.toFixed(3)} ms, of 1,000: ${whileShort.toFixed(3)} ms`,
    )
    const granted = client.news.map((news) => (news.type === 'granted' ? news.id : news.type))
    expect(granted).toEqual(ids)
    // A scan of the line would make it hundreds of times slower.
    expect(whileLong).toBeLessThan(whileShort * 10 + 1)
  })
})

describe('closing', () => {
  it('answers what was asked before, and refuses what comes after', async () => {
    const client = connect(sqlite(tempFolder().path('locks.db')))
    const asked = client.claim(request('r', '1'))
    const closing = client.close()
    await expect(client.release('r', '1')).rejects.toMatchObject({ code: 'CLOSED', store: 'sqlite' })
    await closing
    expect(await asked).toMatchObject({ status: 'granted' })
    await expect(views(client)).rejects.toMatchObject({ code: 'CLOSED' })
    await client.close()
  })

  it('keeps the file open for the other clients, and opens it again for a later one', async () => {
    const path = tempFolder().path('locks.db')
    const store = sqlite(path)
    const [one, two] = [connect(store), connect(store)]
    await one.claim(request('r', '1'))
    await one.close()
    expect(await two.claim(request('r', '2'))).toMatchObject({ status: 'waiting' })
    await two.close()
    expect(await connect(store).pulse([beat('r', '1')])).toMatchObject([{ status: 'held' }])
  })

  it('leaves everything in the database file itself', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.claim(request('r', '1'))
    await client.close()
    const { copyFileSync } = await import('node:fs')
    copyFileSync(path, `${path}.copy`)
    expect(ask(await openRaw(`${path}.copy`), 'SELECT count(*) FROM claim')).toBe(1)
  })

  it('does not touch a file that was never used', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.close()
    expect(existsSync(path)).toBe(false)
  })

  it('forgets the watches of the client', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.read('k', true)
    const raw = await openRaw(path)
    expect(ask(raw, 'SELECT count(*) FROM watcher')).toBe(1)
    await client.close()
    expect(ask(raw, 'SELECT count(*) FROM watcher')).toBe(0)
  })
})
