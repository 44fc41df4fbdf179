// A lock manager in a process of its own: makes the requests that its parent asks for, and tells what becomes of them.
import { Holdfast } from 'holdfast'
import { LockManager } from 'holdfast/web-locks'

const [url, space] = process.argv.slice(2)
const client = await Holdfast.open(url, { space })
const locks = new LockManager(client)
/** By the number of a request: what ends its callback, and what aborts it. */
const requests = new Map()

const commands = {
  request({ number, name, options: { isAbortable, ...options } }) {
    const giveUp = new AbortController()
    const signal = isAbortable ? { signal: giveUp.signal } : {}
    const work = new Promise((settle) => requests.set(number, { settle, abort: () => giveUp.abort() }))
    locks
      .request(name, { ...options, ...signal }, (lock) => {
        process.send({ number, event: 'called', value: lock && { mode: lock.mode, fence: lock.fence } })
        return work
      })
      .then(
        (value) => process.send({ number, event: 'ended', value }),
        (error) => process.send({ number, event: 'ended', value: `${error.name}: ${error.message}` }),
      )
  },
  settle: ({ number }) => requests.get(number).settle('done'),
  abort: ({ number }) => requests.get(number).abort(),
  async query({ number }) {
    process.send({ number, event: 'ended', value: await locks.query() })
  },
  async close({ number }) {
    await client.close({ drain: 0 })
    process.send({ number, event: 'ended' })
  },
}

process.on('message', (message) => void commands[message.command](message))
process.send('ready')
