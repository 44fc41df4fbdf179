import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import type { PostgresDriver } from '../../src/stores/postgres/driver.js'
import { openAddress } from '../../src/stores/postgres/packages.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startPostgres } from '../servers/postgres.js'

// postgres.js keeps the state of a connection for the next one: what it has written and not sent,
// and the number of rows. It also gives a query to a connection that has failed and not closed.
describeOn('postgres', 'a connection of postgres.js that fails', () => {
  /** With its only connection for queries. */
  async function started(): Promise<{ driver: PostgresDriver; socket: Socket }> {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const sockets: Socket[] = []
    const note = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket)
    subscribe('net.client.socket', note)
    onTestFinished(() => void unsubscribe('net.client.socket', note))
    const address = { url: server.url, driver: 'postgres', connections: 2, tls: undefined } as const
    const driver = await openAddress(address, systemEnv)
    onTestFinished(() => driver.close())
    expect(await driver.ask('SELECT $1', ['one'])).toBe('one')
    const socket = sockets.find(({ remotePort }) => remotePort === server.port)
    if (socket === undefined) throw new Error('There is no connection to the server')
    return { driver, socket }
  }

  it('fails the query that it is given before it has closed, and serves the next ones', async () => {
    const { driver, socket } = await started()
    let late: Promise<unknown> | undefined
    socket.once('error', () => {
      // In the same turn of the event loop: the socket closes at its end.
      setImmediate(() => {
        late = driver.ask('SELECT $1', ['two'])
        late.catch(() => {})
      })
    })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.destroy(new Error('reset by the test'))
    await closed
    await expect(late).rejects.toThrow('CONNECTION_CLOSED')
    await eventually(
      'an answer',
      async () => (await driver.ask('SELECT $1', ['three']).catch(() => '')) === 'three',
      5000,
    )
  })
})
