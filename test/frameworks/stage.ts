import { fileURLToPath } from 'node:url'
import type { Holdfast } from '../../src/primitives/holdfast.js'

/** For `node --import`: the program prints `tick` at each attempt to run a job. */
export const ticks = fileURLToPath(new URL('ticks.mjs', import.meta.url))

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
