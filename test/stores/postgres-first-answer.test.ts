import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'

describeOn('postgres', 'a session that ends before its first answer is read', () => {
  /** Answers of the first connection come all at once, when its session has ended. */
  async function wayTo(server: PostgresServer): Promise<number> {
    let count = 0
    const way = createServer(async (client) => {
      const isFirst = ++count === 1
      const up = connect(server.port, '127.0.0.1')
      for (const socket of [client, up]) socket.on('error', () => {})
      client.pipe(up)
      if (!isFirst) return void up.pipe(client)
      const answers: Buffer[] = []
      up.on('data', (data) => answers.push(data))
      // The last message of the greeting: the server waits for a query.
      await eventually('the greeting', () => Buffer.concat(answers).includes('Z\0\0\0\x05I'))
      const ended = once(up, 'end')
      await server.dropClients()
      await ended
      client.end(Buffer.concat(answers))
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void way.close())
    await once(way, 'listening')
    return (way.address() as AddressInfo).port
  }

  it('does not end the process', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const port = await wayTo(server)
    const url = server.url.replace(String(server.port), String(port))
    const locks = new Holdfast(postgres(url, { driver: 'pg' }))
    const hold = await locks.mutex('door').acquire()
    expect(hold.isValid).toBe(true)
    await hold.release()
    await locks.close()
  })
})
