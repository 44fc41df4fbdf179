import { Queue, QueueEvents } from 'bullmq'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Bench } from '../cli/processes.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { compileRecipes } from './recipes.js'
import { tickInTwo } from './stage.js'

let recipe: ReturnType<typeof compileRecipes>

beforeAll(() => {
  recipe = compileRecipes('docs/guides/frameworks/jobs.md')
})

describe('node-cron', () => {
  it('of three ticks in each of two processes, one runs', async () => {
    const bench = new Bench()
    const change = { '0 3 * * *': '* * * * * *', 'sqlite:./locks.db': bench.store }
    const file = recipe('## node-cron', change)
    const processes = await tickInTwo(bench, file)
    // A busy machine is late for a tick, and node-cron warns of that.
    const fine = { code: 0, stderr: expect.not.stringContaining('ERROR') }
    for (const each of processes) expect(await each.done).toMatchObject(fine)
  })
})

describeOn('redis', 'BullMQ', () => {
  it('of three equal jobs for two workers, one runs', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const bench = new Bench()
    const file = recipe('## BullMQ')
    const workers = [1, 2].map(() => bench.node([file], { REDIS_URL: server.url }))
    const connections = [1, 2].map(() => new Redis(server.url, { maxRetriesPerRequest: null }))
    const [one, other] = connections as [Redis, Redis]
    const queue = new Queue('reports', { connection: one })
    const events = new QueueEvents('reports', { connection: other })
    await events.waitUntilReady()
    await expect.poll(() => queue.getWorkersCount()).toBe(2)
    const days = ['monday', 'monday', 'monday', 'tuesday']
    const jobs = await Promise.all(days.map((day) => queue.add('report', { day })))
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)))
    const ran = results.map((result) => String(result).startsWith('written by'))
    expect(ran.filter((each, index) => each && index < 3)).toHaveLength(1)
    expect(ran[3]).toBe(true)
    await events.close()
    await queue.close()
    for (const each of connections) each.disconnect()
    for (const each of workers) each.kill('SIGTERM')
    for (const each of workers) expect(await each.done).toMatchObject({ code: 0, stderr: '' })
  })
})
