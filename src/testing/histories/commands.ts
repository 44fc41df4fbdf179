/**
 * Which claim a command is about; resolved when the command runs, so that shrinking a history
 * leaves it meaningful.
 */
export interface Target {
  /**
   * `own`: in a line, of the acting client. `line`: in a line. `past`: ever asked for. `nowhere`:
   * no claim at all.
   */
  readonly among: 'own' | 'line' | 'past' | 'nowhere'
  readonly index: number
}

/**
 * What the claimant says it has seen: nothing, the last fence, one from before a loss of state, one
 * from a broken clock.
 */
export type Floor = 'none' | 'seen' | 'ahead' | 'absurd'

export interface Terms {
  readonly leaseMs: number
  readonly presenceMs: number
  readonly maxHoldMs: number | null
  readonly floor: Floor
  readonly block: number
  readonly maxWaiters: number | undefined
}

/**
 * Which fences a beat names: above all that were given, right above that of the claim (if it is
 * exclusive; otherwise above all), that of the claim, one that was seen, or none that ever was.
 */
export type NamedFence = 'ahead' | 'next' | 'own' | 'seen' | 'never'

export interface BeatPlan {
  readonly target: Target
  readonly leaseMs: number
  readonly presenceMs: number
  readonly permits: number | undefined
  readonly block: number | undefined
  /** In place of a block, where the store takes them. */
  readonly fences: { readonly first: NamedFence; readonly count: number; readonly index: number } | undefined
}

export type Command =
  | {
      readonly type: 'claim'
      readonly client: number
      readonly want: { resource: string; permits: number; capacity: number }
      readonly mode: 'queue' | 'try' | 'steal'
      readonly terms: Terms
    }
  | {
      readonly type: 'adopt'
      readonly client: number
      readonly target: Target
      /**
       * With the fence that the target has now, one that it or another had, or none that ever was.
       */
      readonly fence: 'right' | 'past' | 'never'
      readonly index: number
      readonly terms: Terms
    }
  | { readonly type: 'resend'; readonly index: number }
  | { readonly type: 'pulse'; readonly client: number; readonly beats: readonly BeatPlan[] }
  | {
      readonly type: 'release'
      readonly client: number
      readonly target: Target
      readonly isElsewhere: boolean
    }
  | { readonly type: 'evict'; readonly client: number; readonly target: Target; readonly all: boolean }
  | { readonly type: 'cancel'; readonly client: number; readonly target: Target }
  | {
      readonly type: 'resize'
      readonly client: number
      readonly resource: string
      readonly declared: number
      readonly capacity: number
    }
  | { readonly type: 'read'; readonly client: number; readonly key: string; readonly watch: boolean }
  | {
      readonly type: 'write'
      readonly client: number
      readonly key: string
      readonly expect: 'right' | 'none' | 'past'
      readonly value: string | null
      readonly retentionMs: number | null
    }
  | {
      readonly type: 'inspect'
      readonly client: number
      readonly prefix: string
      readonly resource: string | undefined
    }
  | { readonly type: 'states'; readonly client: number; readonly prefix: string }
  | { readonly type: 'close'; readonly client: number }
  | {
      readonly type: 'advance'
      /**
       * By so much, or to the deadline of a claim or value (and so much past it; negative: before
       * it).
       */
      readonly to: 'later' | 'deadline'
      readonly ms: number
      readonly index: number
    }

export const CLIENTS = 4
/** One is the beginning of another, for `inspect`. */
export const RESOURCES: readonly string[] = ['door', 'pool', 'pool/deep']
export const KEYS: readonly string[] = ['latch', 'latch/2']
