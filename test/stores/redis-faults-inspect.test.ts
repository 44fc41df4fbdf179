import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { now } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

/** `npm run test:faults` looks at a million. */
const RESOURCES = Number(process.env['HOLDFAST_FAULT_RESOURCES'] ?? 20_000)
const AT_ONCE = 2000

/** Looks again if the others stood still while it looked. */
const MOST_LOOKS = 5

/** Asks for an answer all the time, until it is told to stop. On a thread of its own: this one is busy with what it inspects. */
const BYSTANDER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { Redis } = require('ioredis')
  const client = new Redis(workerData)
  let [answers, longestMs, isOver] = [0, 0, false]
  parentPort.on('message', () => { isOver = true })
  void (async () => {
    await client.ping()
    parentPort.postMessage('ready')
    while (!isOver) {
      const askedAt = performance.now()
      await client.ping()
      longestMs = Math.max(longestMs, performance.now() - askedAt)
      answers++
    }
    parentPort.postMessage({ answers, longestMs })
    process.exit()
  })()
`

interface Bystander {
  stop(): Promise<{ answers: number; longestMs: number }>
}

/** Resolves when it has begun. */
async function bystander(url: string): Promise<Bystander> {
  const worker = new Worker(BYSTANDER, { eval: true, workerData: url })
  await once(worker, 'message')
  return {
    async stop() {
      worker.postMessage('stop')
      const [result] = await once(worker, 'message')
      return result
    },
  }
}

async function callsOf(server: RedisServer, command: string): Promise<number> {
  const stats = await server.cli('info', 'commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

describeOn('redis', 'inspection of many resources', () => {
  it(`goes over ${RESOURCES} of them in small steps, between which others are served`, {
    timeout: 900_000,
  }, async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const connection = redis(server.url).connect({ id: 'holder', space: 'default', push: () => {} })
    onTestFinished(() => connection.close())
    for (let start = 0; start < RESOURCES; start += AT_ONCE) {
      const names = Array.from(
        { length: Math.min(AT_ONCE, RESOURCES - start) },
        (_, index) => `r${start + index}`,
      )
      await Promise.all(
        names.map((name) => connection.claim(claimOf(name, `holder:${name}`, { leaseMs: 3_600_000 }))),
      )
    }
    // Whatever takes longer than 20 ms of the server's time is written down.
    await server.cli('config', 'set', 'slowlog-log-slower-than', '20000')
    const locks = new Holdfast(redis(server.url))
    onTestFinished(() => locks.close({ drain: 0 }))
    // If the server were busy with a whole portion of keys at a time, others would not get a word in between, however often one looks.
    let areServed = false
    for (let time = 0; time < MOST_LOOKS && !areServed; time++)
      areServed = await othersAreServed(server, locks)
    expect(areServed).toBe(true)
  })
})

/** Looks once at everything; gives whether others had more answers meanwhile than there were portions. */
async function othersAreServed(server: RedisServer, locks: Holdfast): Promise<boolean> {
  await server.cli('config', 'resetstat')
  await server.cli('slowlog', 'reset')
  const others = await bystander(server.url)
  const startedAt = now()
  let seen = 0
  for await (const { holders } of locks.inspect()) seen += holders.length
  const tookMs = Math.round(now() - startedAt)
  const { answers, longestMs } = await others.stop()
  const [scans, slow] = [await callsOf(server, 'scan'), Number(await server.cli('slowlog', 'len'))]
  console.log(
    `${seen} resources in ${tookMs} ms by ${scans} SCANs; others had ${answers} answers, the slowest after ${Math.round(longestMs)} ms; ${slow} commands took over 20 ms`,
  )
  expect(seen).toBe(RESOURCES)
  expect(await callsOf(server, 'keys')).toBe(0)
  expect(scans).toBeGreaterThanOrEqual(RESOURCES / 2000)
  return answers > scans
}
