// Holds a lock until its input ends: `node holder.mjs ADDRESS NAME TTL`. Says `held`, and `lost` or `kept` at the end.
import { Holdfast } from 'holdfast'
import { etcd } from 'holdfast/etcd'

const [address = '', name = '', ttl = ''] = process.argv.slice(2)
const locks = new Holdfast(etcd(address, { shared: 'etcdctl', ttl: `${ttl}s` }))
const hold = await locks.mutex(name).acquire()
process.stdout.write('held\n')
await new Promise((resolve) => process.stdin.once('end', resolve).resume())
process.stdout.write(hold.isValid ? 'kept\n' : 'lost\n')
await hold.release().catch(() => {})
await locks.close()
