// Counts in a file, each time under a lock that it shares with others: `node counter.mjs ADDRESS NAME FILE TURNS`; as test/peers/etcd/main.go.
import { readFileSync, writeFileSync } from 'node:fs'
import { Holdfast } from 'holdfast'
import { etcd } from 'holdfast/etcd'

const [address = '', name = '', file = '', turns = '0'] = process.argv.slice(2)
const locks = new Holdfast(etcd(address, { shared: 'etcdctl' }))
for (let turn = 0; turn < Number(turns); turn++)
  await locks.mutex(name).run(() => writeFileSync(file, String(Number(readFileSync(file, 'utf8')) + 1)))
await locks.close()
