import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import type { Push } from '../../src/contract/store.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import type { Message } from '../../src/stores/sqlite/outbox.js'
import { PeerSockets } from '../../src/stores/sqlite/peer-sockets.js'
import { DEAF_LIMIT_MS, takeTurnsDeaf } from './deaf-turns.js'
import { tempFolder } from './sqlite/helpers.js'

const gap: Push = { type: 'gap' }
const message = (client: string): Message => ({ space: 's', client, news: gap })

function listeners(path: string, ...names: string[]) {
  return names.map((name) => {
    const heard: string[] = []
    const sockets = new PeerSockets(path, name, ({ client }) => heard.push(client))
    sockets.listen()
    return { sockets, heard, name }
  })
}

describe('sockets', () => {
  it('carry messages in order, also the ones sent before they are connected', async () => {
    const [one, two] = listeners(tempFolder().path('locks.db'), 'one', 'two')
    if (!one || !two) throw new Error('unreachable')
    const clients = Array.from({ length: 100 }, (_, index) => `c\n${index}`)
    await Promise.all(clients.map((client) => one.sockets.send('two', [message(client)])))
    await vi.waitFor(() => expect(two.heard).toEqual(clients), 30_000)
    one.sockets.close()
    two.sockets.close()
  })

  it('lose nothing while dead sockets are looked for', async () => {
    const [one, two] = listeners(tempFolder().path('locks.db'), 'one', 'two')
    const sweeping = one?.sockets.sweep(10)
    // The probe of the other socket has begun, or is about to.
    for (let turn = 0; turn < 20; turn++) {
      await one?.sockets.send('two', [message(String(turn))])
      await new Promise((resolve) => setImmediate(resolve))
    }
    await sweeping
    await vi.waitFor(() => expect(two?.heard).toHaveLength(20), 30_000)
    one?.sockets.close()
    two?.sockets.close()
  })

  it('are closed at both ends', async () => {
    const [one, two] = listeners(tempFolder().path('locks.db'), 'one', 'two')
    await one?.sockets.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    two?.sockets.close()
    // Ours closes with theirs: the next message must not go to a socket that no process reads.
    await vi.waitFor(() => expect(one?.sockets.size).toBe(0), 30_000)
    one?.sockets.close()
  })

  it('are closed when they were not used for a while, and opened again', async () => {
    const [one, two] = listeners(tempFolder().path('locks.db'), 'one', 'two')
    await one?.sockets.send('two', [message('x')])
    one?.sockets.closeIdle()
    expect(one?.sockets.size).toBe(1)
    one?.sockets.closeIdle()
    await vi.waitFor(() => expect([one?.sockets.size, two?.sockets.size]).toEqual([0, 0]), 30_000)
    await one?.sockets.send('two', [message('y')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x', 'y']), 30_000)
    one?.sockets.close()
    two?.sockets.close()
  })

  it('give up quietly where no process listens', async () => {
    const path = tempFolder().path('locks.db')
    const [one] = listeners(path, 'one')
    await one?.sockets.send('nobody', [message('x')])
    one?.sockets.close()
    expect(existsSync(`${path}-wires`)).toBe(false)
  })

  it('listen again when the folder was removed', async () => {
    const path = tempFolder().path('locks.db')
    const [one, two] = listeners(path, 'one', 'two')
    rmSync(`${path}-wires`, { recursive: true })
    two?.sockets.check()
    await one?.sockets.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    one?.sockets.close()
    two?.sockets.close()
  })

  it('go through the temporary folder where the path is too long for a socket', async () => {
    const folder = tempFolder().path('d'.repeat(150))
    mkdirSync(folder)
    const [one, two] = listeners(`${folder}/locks.db`, 'one', 'two')
    await one?.sockets.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    expect(readdirSync(folder)).toEqual([])
    one?.sockets.close()
    two?.sockets.close()
  })

  it(
    'are not needed by waiters: each waiter of a moving line is served',
    async () => {
      const path = tempFolder().path('locks.db')
      writeFileSync(`${path}-wires`, 'in the way')
      await takeTurnsDeaf(() => sqlite(path))
    },
    DEAF_LIMIT_MS,
  )
})
