// The contestants on memcached. `pair(task)` is one acquire and release of the lock with that number.
import { connect } from 'node:net'
import { Holdfast } from 'holdfast'
import { memcached } from 'holdfast/memcached'

const LEASE_S = 30

/** What people write by hand: `add` with a time to live, `delete`. One socket, pipelined. */
export function addAndDelete(address) {
  const client = new BareClient(address)
  return {
    pair: async (task) => {
      while ((await client.send(`add lock-${task} 0 ${LEASE_S} 1\r\n1\r\n`)) !== 'STORED') {}
      await client.send(`delete lock-${task}\r\n`)
    },
    close: async () => client.close(),
  }
}

export function holdfast(address, options) {
  const locks = new Holdfast(memcached(address), options)
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(`lock-${task}`))
  return {
    pair: async (task) => {
      const hold = await mutexes[task].acquire()
      await hold.release()
    },
    close: () => locks.close(),
  }
}

/** Commands of one turn travel in one packet; replies are single lines. */
class BareClient {
  #socket
  #pending = []
  #unsent = ''
  #rest = ''

  constructor(address) {
    const [host, port] = address.split(':')
    this.#socket = connect(Number(port), host).setNoDelay(true).setEncoding('latin1')
    this.#socket.on('data', (text) => this.#onData(text))
  }

  send(command) {
    return new Promise((resolve) => {
      this.#pending.push(resolve)
      if (this.#unsent === '') process.nextTick(() => this.#flush())
      this.#unsent += command
    })
  }

  close() {
    this.#socket.destroy()
  }

  #flush() {
    this.#socket.write(this.#unsent)
    this.#unsent = ''
  }

  #onData(text) {
    const lines = (this.#rest + text).split('\r\n')
    this.#rest = lines.pop()
    for (const [index, line] of lines.entries()) this.#pending[index](line)
    this.#pending = this.#pending.slice(lines.length)
  }
}
