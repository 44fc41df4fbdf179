// Connects, asks once and then has nothing to do: the process must end by itself. `waits`: with a request that nobody answers.
import { ZooKeeperClient } from 'holdfast/zookeeper/client'

const [, , servers, what] = process.argv
const zk = new ZooKeeperClient(servers, { requestTimeout: what === 'waits' ? 700 : '30s' })
if (what === 'waits') await zk.sync().catch((error) => console.log(error.code))
else {
  await zk.create('/idle-', { mode: 'ephemeralSequential' })
  await zk.exists('/nothing', { watch: () => console.log('never') })
  console.log('idle')
}
