import type { LockOrder } from '../../primitives/options.js'
import type { Mix } from './lock-choice.js'

/** What a caller may say about the load; the rest is the usual, or drawn. */
export interface LoadOptions {
  processes?: number
  tasksPerProcess?: number
  order?: LockOrder
  isHot?: boolean
}

/** What the processes of a world do. */
export interface Load {
  readonly processes: number
  readonly tasksPerProcess: number
  readonly order: LockOrder
  readonly resources: readonly string[]
  readonly mix: Mix
}

/** The names of the locks that a world uses, as far as it uses so many. */
const NAMES = ['a', 'b', 'c', 'd', 'e']

/** What the options say, and the usual for what they leave out. */
export function plainLoad(options: LoadOptions): Load {
  const { processes = 4, tasksPerProcess = 3, order = 'strict', isHot = order === 'cohort' } = options
  const mix = { isHot, isMixed: false, readRate: 0.3, orderRate: 0, lingerRate: 0 }
  return { processes, tasksPerProcess, order, resources: NAMES.slice(0, 2), mix }
}

/** What the options say, and a random draw for what they leave out. */
export function mixedLoad(options: LoadOptions, random: () => number): Load {
  const count = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  const [someProcesses, someTasks] = [count(2, 4), count(1, 8)]
  const someOrder = random() < 0.5 ? 'cohort' : 'strict'
  // Few names: waiters meet. Many: locks are free, so that leases linger.
  const resources = NAMES.slice(0, random() < 0.5 ? 1 : count(2, NAMES.length))
  const isHot = random() < 0.7
  // Readers of several processes share a lock for long only where writers are rare.
  const readRate = random() < 0.25 ? 0.98 : random() * 0.9
  const orderRate = random() < 0.5 ? 0 : random()
  const lingerRate = random() < 0.3 ? 0 : random()
  return {
    processes: options.processes ?? someProcesses,
    tasksPerProcess: options.tasksPerProcess ?? someTasks,
    order: options.order ?? someOrder,
    resources,
    mix: { isHot: options.isHot ?? isHot, isMixed: true, readRate, orderRate, lingerRate },
  }
}
