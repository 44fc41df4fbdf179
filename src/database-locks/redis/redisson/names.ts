// The names of Redisson 4. A name with a brace is its own hash tag; others are put into braces.

function tagged(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`
}

/** The key of what belongs to a name, in its slot. */
export function besideName(name: string): string {
  return name.includes('{') ? name : `{${name}}`
}

export const lockChannel = (name: string): string => tagged('redisson_lock__channel', name)
export const queueKey = (name: string): string => tagged('redisson_lock_queue', name)
export const timeoutsKey = (name: string): string => tagged('redisson_lock_timeout', name)
export const tokenKey = (name: string): string => tagged('redisson_lock_token', name)
export const readWriteChannel = (name: string): string => tagged('redisson_rwlock', name)
export const semaphoreChannel = (name: string): string => tagged('redisson_sc', name)
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`

/** Of Holdfast alone: remembers for a while what became of one call, so that it is done once. */
export const callKey = (name: string, id: string): string => `${besideName(name)}:holdfast:${id}`
