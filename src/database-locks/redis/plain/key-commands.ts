import { isForbidden } from '../../../stores/redis/failures.js'
import { messageOfError } from '../../../stores/shared/failures.js'
import type { PeerCalls } from '../calls.js'
import { deleteKey, renewKey, takeKey } from './scripts.js'

/** The steps of a lock that is one key. Each resolves with whether the key is, or was, ours. */
export interface KeyCommands {
  take(key: string, token: string, leaseMs: number): Promise<boolean>
  renew(key: string, token: string, leaseMs: number): Promise<boolean>
  delete(key: string, token: string): Promise<boolean>
}

/** By Lua, on every server. */
export class ScriptedKeyCommands implements KeyCommands {
  readonly #calls: PeerCalls

  constructor(calls: PeerCalls) {
    this.#calls = calls
  }

  async take(key: string, token: string, leaseMs: number): Promise<boolean> {
    return (await this.#calls.run(takeKey, [key], token, leaseMs)) === '1'
  }

  async renew(key: string, token: string, leaseMs: number): Promise<boolean> {
    return (await this.#calls.run(renewKey, [key], token, leaseMs)) === '1'
  }

  async delete(key: string, token: string): Promise<boolean> {
    return (await this.#calls.run(deleteKey, [key], token)) === '1'
  }
}

/** Without scripts, where the server can compare before it sets and deletes. */
class NativeKeyCommands implements KeyCommands {
  readonly #calls: PeerCalls
  readonly #compareAndDelete: readonly string[]

  constructor(calls: PeerCalls, compareAndDelete: readonly string[]) {
    this.#calls = calls
    this.#compareAndDelete = compareAndDelete
  }

  async take(key: string, token: string, leaseMs: number): Promise<boolean> {
    const before = await this.#calls.command('SET', key, token, 'NX', 'GET', 'PX', String(leaseMs))
    if (before === null || before === undefined) return true
    // Taken by an earlier sending, whose answer was lost.
    return String(before) === token && this.renew(key, token, leaseMs)
  }

  async renew(key: string, token: string, leaseMs: number): Promise<boolean> {
    const reply = await this.#calls.command('SET', key, token, 'IFEQ', token, 'PX', String(leaseMs))
    return reply !== null && reply !== undefined
  }

  async delete(key: string, token: string): Promise<boolean> {
    return String(await this.#calls.command(...deleteWords(this.#compareAndDelete, key, token))) === '1'
  }
}

/** `DELEX key IFEQ token` of Redis 8.4, `DELIFEQ key token` of Valkey 9. */
const COMPARE_AND_DELETE = [['DELEX', 'IFEQ'], ['DELIFEQ']]

function deleteWords(
  [name = '', ...how]: readonly string[],
  key: string,
  token: string,
): [string, ...string[]] {
  return [name, key, ...how, token]
}

/** Asks the server once which commands it has, by deleting a key that cannot be there. */
export async function keyCommandsOf(calls: PeerCalls, key: string, token: string): Promise<KeyCommands> {
  const { driver } = calls
  // A client puts its prefix only before the keys of commands that it knows.
  const isPlain = !driver.isCluster && driver.keyPrefix === ''
  for (const command of isPlain ? COMPARE_AND_DELETE : [])
    try {
      await calls.command(...deleteWords(command, key, token))
      return new NativeKeyCommands(calls, command)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  return new ScriptedKeyCommands(calls)
}

/** Whether the server has no such command or option, or the user may not use it. */
export function isMissing(error: unknown): boolean {
  const message = messageOfError(error)
  return /unknown command|syntax error/i.test(message) || isForbidden(message)
}
