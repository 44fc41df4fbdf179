import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import type { Push } from '../../src/contract/store.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import type { Message } from '../../src/stores/sqlite/outbox.js'
import { Wires } from '../../src/stores/sqlite/wires.js'
import { DEAF_LIMIT_MS, takeTurnsDeaf } from './deaf-turns.js'
import { tempFolder } from './sqlite/helpers.js'

const gap: Push = { type: 'gap' }
const message = (client: string): Message => ({ space: 's', client, news: gap })

function ends(path: string, ...names: string[]) {
  return names.map((name) => {
    const heard: string[] = []
    const wires = new Wires(path, name, ({ client }) => heard.push(client))
    wires.listen()
    return { wires, heard, name }
  })
}

describe('wires', () => {
  it('carry messages in order, also the ones sent before they are laid', async () => {
    const [one, two] = ends(tempFolder().path('locks.db'), 'one', 'two')
    if (!one || !two) throw new Error('unreachable')
    const clients = Array.from({ length: 100 }, (_, index) => `c\n${index}`)
    await Promise.all(clients.map((client) => one.wires.send('two', [message(client)])))
    await vi.waitFor(() => expect(two.heard).toEqual(clients), 30_000)
    one.wires.close()
    two.wires.close()
  })

  it('lose nothing while dead ends are looked for', async () => {
    const [one, two] = ends(tempFolder().path('locks.db'), 'one', 'two')
    const sweeping = one?.wires.sweep(10)
    // The probe of the other end is under way by now, or just about to be.
    for (let turn = 0; turn < 20; turn++) {
      await one?.wires.send('two', [message(String(turn))])
      await new Promise((resolve) => setImmediate(resolve))
    }
    await sweeping
    await vi.waitFor(() => expect(two?.heard).toHaveLength(20), 30_000)
    one?.wires.close()
    two?.wires.close()
  })

  it('are taken down at both ends', async () => {
    const [one, two] = ends(tempFolder().path('locks.db'), 'one', 'two')
    await one?.wires.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    two?.wires.close()
    // Ours ends with theirs: the next message finds nobody, instead of a socket that nobody reads.
    await vi.waitFor(() => expect(one?.wires.size).toBe(0), 30_000)
    one?.wires.close()
  })

  it('give up quietly where nobody is', async () => {
    const path = tempFolder().path('locks.db')
    const [one] = ends(path, 'one')
    await one?.wires.send('nobody', [message('x')])
    one?.wires.close()
    expect(existsSync(`${path}-wires`)).toBe(false)
  })

  it('are laid again when somebody has removed the folder', async () => {
    const path = tempFolder().path('locks.db')
    const [one, two] = ends(path, 'one', 'two')
    rmSync(`${path}-wires`, { recursive: true })
    two?.wires.check()
    await one?.wires.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    one?.wires.close()
    two?.wires.close()
  })

  it('go through the temporary folder where the path is too long for a socket', async () => {
    const folder = tempFolder().path('d'.repeat(150))
    mkdirSync(folder)
    const [one, two] = ends(`${folder}/locks.db`, 'one', 'two')
    await one?.wires.send('two', [message('x')])
    await vi.waitFor(() => expect(two?.heard).toEqual(['x']), 30_000)
    expect(readdirSync(folder)).toEqual([])
    one?.wires.close()
    two?.wires.close()
  })

  it(
    'are not needed by those who wait: each one of a line that moves on is served',
    async () => {
      const path = tempFolder().path('locks.db')
      writeFileSync(`${path}-wires`, 'in the way')
      await takeTurnsDeaf(() => sqlite(path))
    },
    DEAF_LIMIT_MS,
  )
})
