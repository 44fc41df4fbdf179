import { AsyncLocalStorage } from 'node:async_hooks'
import { HoldfastError } from '../../../base/errors.js'
import type { PeerHold } from '../hold.js'
import type { RedissonFormat } from './formats.js'

/** What Redisson takes for a thread of a client, and how often it has entered. */
export class RedissonOwner {
  /** `CLIENT:THREAD`, as Redisson writes it. */
  readonly id: string
  readonly entries = { lock: 0, read: 0, write: 0 }

  constructor(id: string) {
    this.id = id
  }
}

/** The inside of one `run`. What its work starts may enter the lock again, as one thread may. */
interface Frame {
  readonly client: object
  readonly family: string
  readonly name: string
  readonly owner: RedissonOwner
  readonly hold: PeerHold
  readonly parent: Frame | undefined
}

const frames = new AsyncLocalStorage<Frame>()

/** Runs work inside a hold. */
export function runInside<T>(frame: Omit<Frame, 'parent'>, work: () => Promise<T>): Promise<T> {
  return frames.run({ ...frame, parent: frames.getStore() }, work)
}

/** The owner around the caller that holds the lock, unless that hold was lost or released. */
export function ownerAround(client: object, format: RedissonFormat, name: string): RedissonOwner | undefined {
  for (let frame = frames.getStore(); frame; frame = frame.parent)
    if (
      frame.client === client &&
      frame.family === format.family &&
      frame.name === name &&
      frame.hold.isValid
    )
      return checkUpgrade(frame.owner, format, name)
  return undefined
}

/** A reader that waits to be alone would wait for itself. */
function checkUpgrade(owner: RedissonOwner, { entry }: RedissonFormat, resource: string): RedissonOwner {
  if (entry !== 'write' || owner.entries.write > 0) return owner
  const message = `A reader of '${resource}' cannot become its writer; release the read lock first, or begin as a writer`
  throw new HoldfastError('UPGRADE_REFUSED', message, { resource, store: 'redis' })
}
