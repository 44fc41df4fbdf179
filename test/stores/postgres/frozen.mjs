// Closes a client whose server has fallen silent while connections to it were being opened, and tells what keeps the process.
import { once } from 'node:events'
import { Holdfast } from 'holdfast'

const locks = await Holdfast.open(process.argv[2], { storeTimeout: '1s' })
await locks.mutex('door').acquire()
process.send('held')
await once(process, 'message')
const asked = ['a', 'b', 'c', 'd'].map((name) => locks.mutex(name).acquire())
await Promise.allSettled(asked)
await locks.close({ drain: 0 }).catch(() => {})
const kept = () => process.getActiveResourcesInfo().filter((kind) => /^(TCP|Timeout)/.test(kind))
for (let turn = 0; turn < 1000 && kept().length > 0; turn++)
  await new Promise((resolve) => setImmediate(resolve))
process.send(kept())
process.disconnect()
