import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { HoldfastError } from '../../src/base/errors.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { LockManager } from '../../src/web-locks/index.js'
import { hold, neverCalled, rejectsWithDom, siteOn, wrapped } from './site.js'

describe('a store that fails', () => {
  const down = new HoldfastError('STORE_UNAVAILABLE', 'It is down')
  const fail = (): Promise<never> => Promise.reject(down)

  it('is told as it is: a lock that could not be asked for is not taken', async () => {
    const { locks } = siteOn(wrapped(() => ({ claim: fail })))
    // A copy, with the stack of the caller.
    const { code, message } = down
    await expect(locks.request('a', neverCalled)).rejects.toMatchObject({ code, message })
    const ifAvailable = locks.request('a', { ifAvailable: true }, neverCalled)
    await expect(ifAvailable).rejects.toMatchObject({ code, message })
    expect(await locks.query()).toEqual({ held: [], pending: [] })
  })

  it('at the release hides neither the value nor the error of the callback', async () => {
    const { locks } = siteOn(wrapped(() => ({ release: fail })))
    expect(await locks.request('a', () => 'value')).toBe('value')
    await expect(locks.request('b', () => Promise.reject('reason'))).rejects.toBe('reason')
  })

  it('and had forgotten the lock at its release: the request rejects', async () => {
    const forgetful = wrapped((connection) => ({
      async release(resource, id) {
        await connection.release(resource, id)
        return false
      },
    }))
    const { locks } = siteOn(forgetful)
    const error = await rejectsWithDom(
      locks.request('a', () => 'value'),
      'AbortError',
    )
    expect(error.cause).toMatchObject({ code: 'HOLD_LOST' })
    await expect(locks.request('a', () => Promise.reject('reason'))).rejects.toBe('reason')
  })
})

describe('a store that is slow', () => {
  it('to answer a request: query() waits for it, and so sees it', async () => {
    const arrive = deferred<void>()
    const slow = wrapped((connection) => ({
      async claim(request) {
        await arrive.promise
        return connection.claim(request)
      },
    }))
    const { locks } = siteOn(slow)
    const held = hold(locks, 'a')
    const state = locks.query()
    arrive.resolve()
    expect((await state).held).toHaveLength(1)
    ;(await held).work.resolve(null)
  })

  it('to answer one request does not keep another lock taken', async () => {
    const answer = deferred<never>()
    const silent = wrapped((connection) => ({
      claim: (request) => (request.resource === 'silent' ? answer.promise : connection.claim(request)),
    }))
    const { locks } = siteOn(silent)
    const order: string[] = []
    let inner: Promise<unknown> | undefined
    await locks.request('a', () => {
      inner = locks.request('silent', neverCalled).catch(() => order.push('no answer'))
    })
    order.push('released')
    answer.reject(new HoldfastError('STORE_UNAVAILABLE', 'It is down'))
    await inner
    expect(order).toEqual(['released', 'no answer'])
  })
})

describe('a store that answers for one name before it answers for another', () => {
  const slowFor = (name: string, answer: Promise<void>) =>
    wrapped((connection) => ({
      async claim(request) {
        const reply = await connection.claim(request)
        if (request.resource === name) await answer
        return reply
      },
    }))

  it('has its callbacks called in the order of the requests', async () => {
    const answer = deferred<void>()
    const { locks } = siteOn(slowFor('slow', answer.promise))
    const order: string[] = []
    const first = locks.request('slow', () => order.push('slow'))
    const second = locks.request('quick', () => order.push('quick'))
    const third = locks.request('slow', { ifAvailable: true }, () => order.push('refused'))
    // Once the store knows them all, only the answer is missing.
    await new Promise((resolve) => setImmediate(resolve))
    answer.resolve()
    await Promise.all([first, second, third])
    expect(order).toEqual(['slow', 'quick', 'refused'])
  })

  it('keeps a callback waiting for a bounded time only', async () => {
    const answer = deferred<void>()
    const { locks } = siteOn(slowFor('silent', answer.promise))
    const silent = locks.request('silent', () => 'late')
    expect(await locks.request('other', () => 'granted')).toBe('granted')
    answer.resolve()
    expect(await silent).toBe('late')
  })
})

describe('processes', () => {
  /** Another process, which holds 'a' with a lease that outlasts a busy machine's pauses, and says what becomes of it. */
  async function holder(path: string): Promise<{ child: ChildProcess; next(): Promise<unknown> }> {
    const child = fork(new URL('holder.mjs', import.meta.url), [path], { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    // Kept until asked for: two may come at once.
    const messages = on(child, 'message')
    const next = async () => (await messages.next()).value[0]
    expect(await next()).toBe('held')
    return { child, next }
  }

  function fileSite(): { path: string; locks: LockManager } {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-web-locks-'))
    const path = join(folder, 'locks.db')
    const client = new Holdfast(sqlite(path))
    onTestFinished(async () => {
      await client.close({ drain: 0 })
      rmSync(folder, { recursive: true, force: true })
    })
    return { path, locks: new LockManager(client) }
  }

  it('steal from each other: the robbed one is told', async () => {
    const { path, locks } = fileSite()
    const { next } = await holder(path)
    const told = next()
    expect(await locks.request('a', { steal: true }, () => 'mine')).toBe('mine')
    expect(await told).toEqual({ name: 'AbortError', cause: 'HOLD_LOST', isAborted: true })
  })

  it('that are killed leave the lock after its lease', async () => {
    const { path, locks } = fileSite()
    const { child } = await holder(path)
    const blocked = locks.request('a', () => 'granted')
    expect((await locks.query()).pending).toHaveLength(1)
    child.kill('SIGKILL')
    expect(await blocked).toBe('granted')
  })

  it('that are stopped for longer than the lease learn of their loss when they wake', async () => {
    const { path, locks } = fileSite()
    const { child, next } = await holder(path)
    const told = next()
    child.kill('SIGSTOP')
    expect(await locks.request('a', () => 'granted')).toBe('granted')
    child.kill('SIGCONT')
    expect(await told).toEqual({ name: 'AbortError', cause: 'HOLD_LOST', isAborted: true })
  })
})
