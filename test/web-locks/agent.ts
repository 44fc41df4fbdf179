import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { type Deferred, deferred } from '../../src/base/deferred.js'
import type { LockManagerSnapshot, LockOptions } from '../../src/web-locks/index.js'
import type { Site } from './site.js'

/** What the other process says of a lock that it was granted. */
export interface Granted {
  mode: string
  fence: number
}

/** A request that another process has made. */
export interface Requested {
  /** null: with `ifAvailable`, it was not. */
  readonly called: Promise<Granted | null>
  /** The value of the request, or its error as text. */
  readonly ended: Promise<unknown>
  /** Ends the callback. */
  settle(): void
  abort(): void
}

interface Answers {
  readonly called: Deferred<Granted | null>
  readonly ended: Deferred<unknown>
}

type Options = Omit<LockOptions, 'signal'> & { isAbortable?: boolean }

/** A lock manager in a process of its own, in the space of a site. */
export class Agent {
  readonly #child: ChildProcess
  readonly #answers = new Map<number, Answers>()

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static async start({ url, space }: Site): Promise<Agent> {
    const child = fork(new URL('agent.mjs', import.meta.url), [url ?? '', space], { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child, 'message')
    const agent = new Agent(child)
    child.on('message', ({ number, event, value }: { number: number; event: keyof Answers; value: never }) =>
      agent.#answers.get(number)?.[event].resolve(value),
    )
    return agent
  }

  request(name: string, options: Options = {}): Requested {
    const { number, called, ended } = this.#send('request', { name, options })
    return {
      called,
      ended,
      settle: () => this.#child.send({ command: 'settle', number }),
      abort: () => this.#child.send({ command: 'abort', number }),
    }
  }

  query(): Promise<LockManagerSnapshot> {
    return this.#send('query', {}).ended as Promise<LockManagerSnapshot>
  }

  close(): Promise<unknown> {
    return this.#send('close', {}).ended
  }

  #send(
    command: string,
    details: object,
  ): { number: number; called: Promise<Granted | null>; ended: Promise<unknown> } {
    const number = this.#answers.size
    const answers = { called: deferred<Granted | null>(), ended: deferred<unknown>() }
    this.#answers.set(number, answers)
    this.#child.send({ command, number, ...details })
    return { number, called: answers.called.promise, ended: answers.ended.promise }
  }
}
