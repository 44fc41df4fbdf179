import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { Hold } from '../../src/primitives/hold.js'
import type { Holdfast } from '../../src/primitives/holdfast.js'
import type { Bench, Running } from '../cli/processes.js'

/** For `node --import`: the program prints `tick` at each attempt to run a job. */
const ticks = fileURLToPath(new URL('ticks.mjs', import.meta.url))

export interface Answer {
  /** 0: there is no answer, because the server is not up or the request was aborted. */
  readonly status: number
  readonly body: Record<string, unknown>
}

export async function answerOf(url: string, method = 'GET', signal?: AbortSignal): Promise<Answer> {
  try {
    const response = await fetch(url, { method, ...(signal ? { signal } : {}) })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  } catch (error) {
    return { status: 0, body: { error: String(error) } }
  }
}

/** How many hold and how many wait. */
export async function countOf(locks: Holdfast, name: string): Promise<{ holders: number; waiters: number }> {
  for await (const { holders, waiters } of locks.inspect({ name }))
    return { holders: holders.length, waiters: waiters.length }
  return { holders: 0, waiters: 0 }
}

/** Asks the server of a recipe to pay an order. */
type Pay = (id: number, signal?: AbortSignal) => Promise<Answer>

/** Resolves when the server at this port has paid an order. */
export async function payAt(port: number): Promise<Pay> {
  const pay: Pay = (id, signal) => answerOf(`http://127.0.0.1:${port}/orders/${id}/pay`, 'POST', signal)
  await expect.poll(() => pay(1)).toMatchObject({ status: 200, body: { paid: '1' } })
  return pay
}

/** Holds order 42 while a request waits for it and is aborted. Returns the hold. */
export async function abortWaiting(locks: Holdfast, pay: Pay): Promise<Hold> {
  const hold = await locks.mutex('order:42').acquire({ lease: '1h' })
  const client = new AbortController()
  const waiting = pay(42, client.signal)
  await expect.poll(() => countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 1 })
  client.abort()
  expect((await waiting).status).toBe(0)
  await expect.poll(() => countOf(locks, 'order:42')).toEqual({ holders: 1, waiters: 0 })
  return hold
}

/** Of three ticks in each of two processes, one writes the report. Ends both by SIGTERM. */
export async function tickInTwo(bench: Bench, file: string): Promise<Running[]> {
  const processes = [1, 2].map(() => bench.node(['--import', ticks, file]))
  await Promise.all(processes.map((each) => each.wrote(/(tick[\s\S]*){3}/)))
  const runsOf = ({ stdout }: Running) => stdout.split('the report is written by').length - 1
  await expect.poll(() => processes.map(runsOf).sort()).toEqual([0, 1])
  for (const each of processes) each.kill('SIGTERM')
  return processes
}
