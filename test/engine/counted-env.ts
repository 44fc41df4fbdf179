import type { Env } from '../../src/base/env.js'

/** An environment that counts what keeps its process alive. */
export interface CountedEnv extends Env {
  readonly kept: number
}

export function countedEnv(env: Env): CountedEnv {
  const timers = new Set<object>()
  let holds = 0
  return {
    get kept() {
      return holds + timers.size
    },
    now: () => env.now(),
    wallMs: () => env.wallMs(),
    random: () => env.random(),
    id: () => env.id(),
    keepProcess() {
      holds++
    },
    letProcessEnd() {
      holds--
    },
    timer(ms, run, options) {
      const timer = {}
      if (options.keepAlive) timers.add(timer)
      const fire = (): void => {
        timers.delete(timer)
        run()
      }
      const cancel = env.timer(ms, fire, options)
      return () => {
        timers.delete(timer)
        cancel()
      }
    },
  }
}
