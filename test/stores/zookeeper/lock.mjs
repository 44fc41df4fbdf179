// A service with Holdfast that takes a lock of Curator's: `node lock.mjs HOSTS PATH [SESSION_MS]`; as CuratorLock.java. It also says
// whether it held the lock when it was told to give it back.
import { once } from 'node:events'
import { Holdfast } from 'holdfast'
import { zookeeper } from 'holdfast/zookeeper'

const [hosts = '', path = '', sessionMs = '20000'] = process.argv.slice(2)
const at = path.lastIndexOf('/')
const options = { root: path.slice(0, at), shared: 'curator', sessionTimeout: Number(sessionMs), tick: 200 }
const locks = new Holdfast(zookeeper(hosts, options))
console.log('waiting')
const hold = await locks.mutex(path.slice(at + 1)).acquire()
console.log('held')
await once(process.stdin, 'data')
console.log(hold.isValid ? 'valid' : 'lost')
await hold.release()
console.log('released')
await once(process.stdin, 'data')
await locks.close()
