// Every subscriber throws. What is left of the lock, and what the process sees of the errors?
import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { Holdfast } from 'holdfast'
import { memory } from 'holdfast/memory'

const uncaught = []
process.on('uncaughtException', (error) => uncaught.push(error.message))

const fail = (message) => () => {
  throw new Error(message)
}
for (const [name, moment] of [
  ['acquire', 'start'],
  ['acquire', 'asyncEnd'],
  ['hold', 'start'],
  ['hold', 'asyncEnd'],
  ['run', 'start'],
])
  tracingChannel(`holdfast:${name}`)[moment].subscribe(fail(`${name}:${moment}`))
tracingChannel('holdfast:run').start.bindStore(new AsyncLocalStorage(), fail('bound'))

const locks = new Holdfast(memory())
const value = await locks.mutex('a').run(async () => 42)
const isLocked = await locks.mutex('a').isLocked()
await locks.close()
await new Promise((resolve) => setImmediate(resolve))
console.log(JSON.stringify({ value, isLocked, uncaught }))
