import type { Store } from '../../contract/store.js'
import type { LockOrder } from '../../primitives/options.js'
import type { NotAs } from './guises.js'
import type { Scene } from './scene.js'

/** What is tested: a store, and how to get a fresh one for each case. */
export interface ConformanceSubject {
  /** For titles and messages. */
  name: string
  /** A fresh, empty place for lines. Called once for each case. */
  open(): Promise<Venue>
  /**
   * Why no other process can reach the lines. The cases across processes are then skipped, with
   * this as the reason.
   */
  oneProcess?: string
  /**
   * Why the store keeps only locks (`countsPermits: false`). The cases of semaphores and barriers
   * are then skipped, with this as the reason.
   */
  locksOnly?: string
  /**
   * Why no beat can say which fences it reserves. The cases about that are then skipped, with this
   * as the reason.
   */
  fixedFences?: string
  /**
   * The address (`file:` URL) of a module whose default export makes the store from a venue's
   * `url`, for the cases across processes. Not needed where `Holdfast.open` understands the URL.
   */
  storeModule?: string
  /**
   * How the locks of the cases serve their waiters, unless a case says it. Run the suite with both.
   * Default `'cohort'`.
   */
  order?: LockOrder
}

/** A fresh place for lines, for one case. */
export interface Venue {
  /**
   * A store value that reaches those lines. Each call may make a new one, as each client of a real
   * system would.
   */
  store(): Store
  /**
   * How another process reaches the same lines. Not needed where the subject gives `oneProcess`.
   */
  url?: string
  dispose(): Promise<void>
}

/** One case, for any test runner. */
export interface ConformanceCase {
  title: string
  /** The numbers of the behaviours that it shows; see `conformanceBehaviours()`. */
  behaviours: readonly number[]
  /** The reason not to run it on this subject. */
  skip?: string
  /**
   * Heavy or sensitive to a busy event loop: not to be run at the same time as others of this
   * process.
   */
  alone: boolean
  run(): Promise<void>
}

/** A case before it knows its subject. */
export interface CaseSpec {
  readonly title: string
  readonly behaviours: readonly number[]
  /** Needs other processes. */
  readonly processes?: true
  /** Needs a store with `takesFences`. */
  readonly choosesFences?: true
  readonly alone?: true
  /** Needs a store that counts permits. */
  readonly permits?: true
  /** Of the cases across processes: also run with the other locks that exclude as a mutex does. */
  readonly everyLock?: true
  /** Why it is not run with some of the locks that its group is run with. */
  readonly notAs?: NotAs
  run(scene: Scene): Promise<void>
}
