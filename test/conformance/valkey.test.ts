import { describe } from 'vitest'
import { missingPeer, peerCommand } from '../../scripts/peers.mjs'
import { startRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

// A share of the cases. npm run test:servers runs more of them, also on Redis 8.
const obstacle = missingPeer('valkey')
const title = 'on Valkey 9'
describe.skipIf(obstacle !== null)(obstacle === null ? title : `${title} (skipped: ${obstacle})`, () => {
  const start = () => startRedis({ program: peerCommand('valkey') })
  runCasesOnRedis('ioredis', 'valkey through ioredis', start, { share: { part: 5, of: 21 } })
})
